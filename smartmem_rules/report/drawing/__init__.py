"""Layered drawings of graphs: what depends on something stands below it, with few crossings and straight lines."""
