"""Models simplified by verified rules and written back as ONNX (docs/simplify.md)."""
