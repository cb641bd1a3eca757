"""Replays certificates: what a plan claims to have done to a model, checked step by step without the optimizer."""
