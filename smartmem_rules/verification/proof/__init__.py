"""Proofs of rules by an SMT solver."""
