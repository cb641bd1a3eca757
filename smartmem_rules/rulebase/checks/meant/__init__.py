"""What an author meant who wrote something that cannot be."""
