"""Trials of each kind of rule: rewrites, eliminations, index rules, tables, layouts."""
