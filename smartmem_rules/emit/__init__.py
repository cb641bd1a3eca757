"""From kernels to OpenCL C: expressions, texture and buffer access, and the templates of `codegen/`."""
