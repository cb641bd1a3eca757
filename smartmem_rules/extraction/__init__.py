"""Chooses the cheapest form of a model from its e-graph."""

from __future__ import annotations

from smartmem_rules.extraction.extract import extract

__all__ = ["extract"]
