"""Rows that a kernel computes and keeps on chip: their stages, and the scores of an attention."""
