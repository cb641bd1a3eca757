"""Whether both sides of a rewrite have one type."""
