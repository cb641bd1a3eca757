"""From syntax trees, messages and words of the language back to text."""
