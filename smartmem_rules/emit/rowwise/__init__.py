"""OpenCL C of elementwise kernels, row reductions and scans."""
