"""Numbers that are larger with `--all`: of examples, repetitions and layers, where a test's modules are loaded."""

from __future__ import annotations

_all = False


def ask_for_all() -> None:
    """From now on, in this process, all cases run."""
    global _all
    _all = True


def with_all(number: int, otherwise: int) -> int:
    """A number where all cases run, and the one that a quick run takes; pytest knows before it loads any test."""
    return number if _all else otherwise
