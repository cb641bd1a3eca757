"""What rules compute when they are applied: numbers, and what the elements of constants are."""
