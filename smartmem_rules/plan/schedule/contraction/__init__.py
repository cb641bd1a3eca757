"""Sizes of contractions, one module for each template, and what their constant factors are packed into."""
