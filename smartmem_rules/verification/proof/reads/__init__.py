"""Proofs that reads of definitions stay inside their tensors."""
