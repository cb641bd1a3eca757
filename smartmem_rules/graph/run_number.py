"""The input that plans have which draw random numbers."""

from __future__ import annotations

RUN_NUMBER = "random:run"
"""An int64 scalar: the same number gives the same random numbers. Runs are counted by default."""
