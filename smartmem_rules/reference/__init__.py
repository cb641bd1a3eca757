"""The browsable reference of a rule base."""
