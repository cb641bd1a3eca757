"""Index maps, expressions and values as JSON, and back."""
