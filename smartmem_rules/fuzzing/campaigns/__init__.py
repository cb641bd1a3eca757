"""Many cases in processes of their own."""
