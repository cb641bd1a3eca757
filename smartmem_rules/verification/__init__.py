"""Judges rules: tests in exact arithmetic, proofs, counterexamples, mutants, discovery."""
