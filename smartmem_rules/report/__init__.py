"""A plan as one HTML file that needs no server: a view of what the other modules know, and of nothing else."""
