"""Finds the sizes of kernels by measuring them on the device."""
