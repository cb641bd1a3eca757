"""Whether outputs are those of an ONNX model: a reference in double precision and bounds from perturbed runs."""
