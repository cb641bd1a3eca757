"""ONNX models as graphs over the operators of the rule base."""
