"""The correctness suite on every implementation of OpenCL that the registries give: `make test-opencl`."""
