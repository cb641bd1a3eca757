"""Extents that depend on data: who passes them on, and graphs whose other nodes have to know them."""
