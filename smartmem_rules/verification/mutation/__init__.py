"""Rules with planted errors, and how many of them are caught."""
