"""The e-graph of a model: every form of it that the rules allow."""
