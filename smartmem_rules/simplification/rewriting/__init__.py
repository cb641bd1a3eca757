"""One simplification: what rules see of a model is saturated, the cheapest form selected and written back."""
