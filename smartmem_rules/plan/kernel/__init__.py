"""Kernels and launches, and what can be said of one alone: its traffic, its key, its addresses, its text."""
