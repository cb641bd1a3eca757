"""The memory and the kernel objects of plans on a device: what runs share, and what each run needs for itself."""
