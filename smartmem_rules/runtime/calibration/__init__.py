"""What a device takes for the parts that kernels are made of, measured on the device itself and kept."""
