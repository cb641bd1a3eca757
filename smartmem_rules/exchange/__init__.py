"""Index maps, expressions and values as JSON, and back; the types of the documents that all others write."""
