"""The rule language: syntax tree, parser, checker and rule base."""
