"""SmartMem as a declarative rule engine: ONNX models to few texture-memory OpenCL kernels."""
