"""How large a model may be and how long it may take: bounds that keep one bad file from taking a computer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from smartmem_rules.errors import SmartmemError
from smartmem_rules.records import dataclass

COUNTABLE = 2**31 - 1
"""Kernels count elements in 32 bits."""
MOST_VALUES = 64
"""Tensors of more elements are data: they are never taken as values that decide a plan."""


class LimitError(SmartmemError):
    """A model exceeds a limit; the message says which, and how it is raised."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds for what a model may ask for; `optimize` takes them, and `--limit NAME=NUMBER` on the command line.

    Attributes:
        steps: steps for which a loop is unrolled whose end depends on data; a run that takes more raises an error.
        nodes: nodes of the graph, after functions are inlined and loops unrolled.
        operands: operands of one node, and results.
        depth: subgraphs and functions inside each other.
        rank: axes of a tensor.
        extent: elements along an axis.
        elements: elements of a tensor; kernels cannot count further than the default.
        folded_bytes: bytes of all tensors that are computed at import because their operands are known.
        name_length: characters of a name.
        seconds: for `optimize` as a whole; looked at between nodes, iterations and stages, so a step that has begun
            ends first.
    """

    steps: int = 256
    nodes: int = 100_000
    operands: int = 4096
    depth: int = 64
    rank: int = 32
    extent: int = COUNTABLE
    elements: int = COUNTABLE
    folded_bytes: int = 1 << 30
    name_length: int = 100_000
    seconds: float = float("inf")

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
                raise LimitError(f"the limit {field.name} cannot be {value!r}; give a positive number")
        if max(self.extent, self.elements) > COUNTABLE:
            raise LimitError(f"extent and elements cannot be more than {COUNTABLE}: kernels count in 32 bits")

    def check(self, name: str, value: float, what: str) -> None:
        """Compare something with the limit of a name.

        Args:
            what: what there is too much of, in the words of a message: `the graph`, `the tensor 'x'`.

        Raises:
            LimitError: it is more.
        """
        most = getattr(self, name)
        if value > most:
            raise LimitError(
                f"{what} has {value} {_WORDS[name]}, more than the limit of {most}"
                + ("" if most == COUNTABLE else f"; raise it with --limit {name}=N or limits=Limits({name}=N)")
            )

    def check_shape(self, shape: Sequence[Any], what: str) -> None:
        """Compare the numbers of a shape with the limits of rank, extent and elements.

        Raises:
            LimitError: one of them is exceeded.
        """
        self.check("rank", len(shape), what)
        count = 1
        for extent in shape:
            self.check("extent", extent, what)
            count *= extent
        self.check("elements", count, what)


_WORDS = {
    "nodes": "nodes",
    "operands": "operands or results",
    "depth": "levels of subgraphs and functions",
    "rank": "axes",
    "extent": "elements along an axis",
    "elements": "elements",
    "folded_bytes": "bytes",
    "name_length": "characters",
}

DEFAULT_LIMITS = Limits()


class Deadline:
    """When the time of a `Limits` is over."""

    def __init__(self, limits: Limits) -> None:
        self._seconds = limits.seconds
        self._end = time.monotonic() + limits.seconds

    def check(self, stage: str) -> None:
        """Raise LimitError if the time is over; `stage` is what would come next."""
        if time.monotonic() > self._end:
            raise LimitError(
                f"the model takes more than the limit of {self._seconds:g} seconds, {stage} is not done; "
                "raise it with --limit seconds=N or limits=Limits(seconds=N)"
            )
