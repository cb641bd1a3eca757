"""Where the elements of each stored tensor lie: candidates, costs, and the choice for the whole graph."""
