"""Differences between answers to special values, and what a reason for them says, for bench/special_values.py."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from special_examples import Kind


class Who(StrEnum):
    """Whose answer is not that of the others."""

    ONNX = "ONNX's evaluator"
    ONNXRUNTIME = "ONNX Runtime"
    HERE = "here"
    EACH = "each"
    REFUSED = "refused here"


@dataclass(frozen=True)
class Difference:
    """What is to be explained: an operator at values of a class, in an element type."""

    operator: str
    kind: Kind
    dtype: str
    who: Who


@dataclass(frozen=True)
class Reason:
    """Why answers differ, and why ours is what it is.

    Attributes:
        operators: their names, between spaces.
        who: whose answer may stand alone.
        kinds, dtypes: of the differences; all where there are none.
        said: whether the evaluator's answer is what ONNX's text says; else the text says nothing, or something else.
    """

    sentence: str
    operators: str
    who: tuple[Who, ...]
    kinds: tuple[Kind, ...] = ()
    dtypes: tuple[str, ...] = ()
    said: bool = False

    def fits(self, difference: Difference) -> bool:
        """Whether this explains the difference."""
        return (
            difference.operator in self.operators.split()
            and difference.who in self.who
            and (not self.kinds or difference.kind in self.kinds)
            and (not self.dtypes or difference.dtype in self.dtypes)
        )
