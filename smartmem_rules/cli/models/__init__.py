"""Commands on models and plans."""
