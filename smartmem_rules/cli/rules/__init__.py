"""Commands on rule files."""
