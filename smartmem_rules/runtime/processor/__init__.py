"""What the processor is under a driver for CPUs: its name, and units that a process has to ask for."""
