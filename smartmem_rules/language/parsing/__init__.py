"""From the text of a rule file to its syntax tree."""
