"""Search for rules that hold."""
