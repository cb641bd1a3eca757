"""What can be known to be wrong with rule files before they run."""
