"""OpenCL C: writing text, expressions, memory accesses, the frame of a kernel."""
