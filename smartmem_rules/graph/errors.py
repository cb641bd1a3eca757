"""The error of models and their inputs, apart from the graph so that running a plan needs no graph."""

from __future__ import annotations

from smartmem_rules.errors import SmartmemError


class GraphError(SmartmemError):
    """A model or its inputs cannot be used; the message says what, where and what to do."""
