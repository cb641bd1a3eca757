"""ONNX models out of graphs over the rule base's operators: what importing does, backwards."""
