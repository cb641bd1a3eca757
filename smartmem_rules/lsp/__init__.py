"""The language server of the rule language."""
