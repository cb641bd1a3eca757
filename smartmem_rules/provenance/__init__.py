"""Makes certificates: which equalities a saturation found lead from a model to its plan."""
