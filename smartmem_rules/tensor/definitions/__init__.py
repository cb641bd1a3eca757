"""Definitions in the rule language as expressions: their values at compile time, their elements, their reads."""
