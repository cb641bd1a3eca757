"""How a model is simplified."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from smartmem_rules.errors import SmartmemError
from smartmem_rules.limits import DEFAULT_LIMITS, Limits
from smartmem_rules.records import dataclass

FOLD_LIMIT = 1 << 20


class SimplifyError(SmartmemError):
    """A model cannot be simplified; the message says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a model is simplified.

    Attributes:
        rules: more rule files; their rules are verified before they are used.
        disable: names of rules, families or tags that are left out.
        keep: names of nodes that stay as they are.
        domains: of operators outside of the standard that rules may make, such as `com.microsoft`.
        opset: the version of the standard operators; by default the model's own.
        fold_limit: bytes of the largest constant that is computed and is larger than what it is computed from.
        exact: only rules that keep every bit.
    """

    rules: Sequence[str | Path] = ()
    disable: Collection[str] = ()
    keep: Collection[str] = ()
    domains: Collection[str] = ()
    opset: int | None = None
    fold_limit: int = FOLD_LIMIT
    exact: bool = False
    limits: Limits = DEFAULT_LIMITS
