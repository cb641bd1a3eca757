"""Nodes that others stand for before definitions are matched: bodies, sequences, old forms, random numbers, trees."""
