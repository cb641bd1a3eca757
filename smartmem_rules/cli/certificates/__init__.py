"""Commands on the certificates of plans."""
