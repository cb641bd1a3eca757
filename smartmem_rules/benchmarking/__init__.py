"""Measures models beside other systems, kernel by kernel, and against what the device can do."""
