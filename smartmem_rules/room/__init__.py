"""Whether a plan fits into the memory of its device, and what would fit where it does not."""
