"""What a drawn model grows by."""
