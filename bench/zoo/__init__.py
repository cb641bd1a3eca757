"""Seven of the networks that SmartMem was measured on, written from their papers, and their export to ONNX."""
