"""Kernels and what can be said of one kernel alone: its traffic, its key, its addresses."""
