"""From an extracted graph to kernels, layouts and memory."""
