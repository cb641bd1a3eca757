"""Draws concrete instances of a rule: shapes, attributes, operands."""
