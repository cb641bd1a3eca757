"""Whether a device computes what a plan's kernels are: their probes, answered at the first load."""
