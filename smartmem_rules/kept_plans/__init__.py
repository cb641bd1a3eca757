"""Whole plans on disk, by all that they depend on."""
