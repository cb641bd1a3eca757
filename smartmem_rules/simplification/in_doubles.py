"""What ONNX Runtime gives for a model is no measure where it rounds itself; there the model in doubles decides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from smartmem_rules.checking.compare import Comparer
from smartmem_rules.graph.errors import GraphError
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.feeds import Array
from smartmem_rules.simplification.feeding import Feeds


@dataclass
class InDoubles:
    """A model that is computed in double precision as soon as two results of ONNX Runtime differ.

    ONNX Runtime runs nodes of halves as floats and rounds some of what is between them. So the difference of a half
    and the same half behind a Reshape may be what rounding took from one of them, and 0 in a model without the Reshape.

    Attributes:
        model: its file, or the model with all its data.
    """

    model: Path | onnx.ModelProto
    _comparer: Comparer | None = None

    def agree(self, feeds: Feeds, name: str, expected: Array, found: Array) -> bool:
        """Whether another form of the model gives an output as rightly as ONNX Runtime gives the model's own.

        That is so where each element is within what rounding explains of the model in doubles, and where rounding alone
        may turn the output, if no element is further from the model in doubles than the model's own.

        Args:
            name: of the output, whose elements are floats.
            expected: what ONNX Runtime gives for it, of the same shape and type as `found`.
            found: what it gives for the other form.
        """
        try:
            if self._comparer is None:
                self._comparer = Comparer(self.model)
            passed = self._comparer.compare(feeds, {name: found}).passed
            return self._is_nearer(feeds, name, expected, found) if passed is None else passed
        except GraphError:  # what cannot be walked through is judged by ONNX Runtime alone
            return False

    def _is_nearer(self, feeds: Feeds, name: str, expected: Array, found: Array) -> bool:
        assert self._comparer is not None
        exact = self._comparer.in_doubles(feeds)
        if exact is None or exact[name].shape != found.shape:
            return False
        return bool((_distance(found, exact[name]) <= _distance(expected, exact[name])).all())


def _distance(array: Array, exact: Array) -> Array:
    """How far each element is from the exact one: 0 where both are NaN or the same infinity, else infinite there."""
    wide, exact = array.astype(np.float64), exact.astype(np.float64)
    same = (wide == exact) | (np.isnan(wide) & np.isnan(exact))
    with np.errstate(all="ignore"):
        off = np.abs(wide - exact)
    return np.where(same, 0.0, np.where(np.isfinite(off), off, np.inf))
