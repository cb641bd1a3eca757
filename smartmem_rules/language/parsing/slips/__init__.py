"""Slips of authors that explain why a text does not follow the grammar, and how to write what they mean."""
