"""Lengths of lists, extents and shapes that an author meant."""
