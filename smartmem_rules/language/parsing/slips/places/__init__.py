"""Slips that are told at the place of their cause, which the parser passes before it stops."""
