"""A plan behind the Open Inference Protocol: an HTTP server, and clients that load it (docs/serving.md)."""
