"""What the outputs of a model are, by implementations that are not ours."""
