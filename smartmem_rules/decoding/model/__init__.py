"""Language models as graphs: their inputs and outputs, and the graphs of steps, read from the model each time."""
