"""What trying shows of items that are right by themselves."""
