"""What a plan's kernels do to a device's memory, without the device: traces of their accesses through a model of it.

`source` reads the OpenCL C of a kernel, `trace` runs it for its addresses alone, `memory` places the addresses in
cache lines, `caches` follows them through the caches, `launch` and `sampling` do that for a whole launch or for windows
of it, `report` puts the kernels of a plan together. `simulated_levels` compares the levels of a model.
"""
