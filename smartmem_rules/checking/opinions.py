"""What a node computes, by the implementation that most others agree with.

ONNX Runtime's kernels and the definitions of the operators have defects and differences of their own.  Where single
and double precision give results that no rounding explains for the same operands, all implementations are asked, and
the one that the most others agree with is followed, for the reference and for the draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx

from smartmem_rules.checking.kernels import (
    DEFINITIONS,
    DOUBLE,
    EVALUATOR,
    NUMPY,
    ONNXRUNTIME,
    SINGLE,
    Kernels,
    as_working,
)
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.primitives import Array

DISPUTED = 1e-2
"""Relative difference of two implementations of one node, for the same operands, that no rounding explains."""
Arrays = Sequence[Array | None]


@dataclass(frozen=True, kw_only=True)
class Opinion:
    """What a node gives.

    Attributes:
        single: for operands as a plan stores them, in single precision.
        single_by: what computed it, and is to compute the draws.
        reference: for the reference's operands, in double precision if `double`.
        reference_by: what computed that.
        errs: whether doubles have rounding errors, None where that is not known; of no meaning for other types.
        dispute: who differs, in words; empty where all agree.
    """

    single: list[Array | None]
    single_by: str
    reference: list[Array | None]
    reference_by: str
    double: bool = True
    errs: bool | None = None
    dispute: str = ""


def opinion(
    kernels: Kernels,
    node: onnx.NodeProto,
    exact: tuple[Arrays, Mapping[str, Array]],
    rounded: tuple[Arrays, Mapping[str, Array]],
) -> Opinion:
    """Compute a node for the reference's operands, and in single precision for those as a plan stores them.

    Args:
        exact: the operands, and the tensors that subgraphs take from outside.
        rounded: the same, rounded.

    Raises:
        NoKernelError: nothing computes it.
    """
    local = kernels.single(node, *rounded)
    if not any(a is not None and a.dtype.kind == "f" for a in (*exact[0], *exact[1].values(), *local.outputs)):
        return Opinion(single=local.outputs, single_by=local.by, reference=list(local.outputs), reference_by=local.by)
    made = kernels.double(node, *exact)
    if made is None:
        wide = [None if array is None else as_working(array, DOUBLE) for array in local.outputs]
        return Opinion(single=local.outputs, single_by=local.by, reference=wide, reference_by=local.by, double=False)
    if differ(local.outputs, made.outputs):
        again = kernels.double(node, *rounded, (made.by,))
        if again is not None and differ(local.outputs, again.outputs):
            return _voted(kernels, node, exact, rounded)
    return Opinion(
        single=local.outputs,
        single_by=local.by,
        reference=made.outputs,
        reference_by=made.by,
        errs=_doubles_err(kernels, node, exact, made.by, made.outputs, local.outputs),
    )


def _voted(
    kernels: Kernels,
    node: onnx.NodeProto,
    exact: tuple[Arrays, Mapping[str, Array]],
    rounded: tuple[Arrays, Mapping[str, Array]],
) -> Opinion:
    """The opinion that the most implementations share; of equally many the first."""
    opinions: list[tuple[str, bool, list[Array | None]]] = []
    for by, double in (
        (NUMPY, True),
        (ONNXRUNTIME, False),
        (DEFINITIONS, True),
        (EVALUATOR, True),
        (ONNXRUNTIME, True),
        (EVALUATOR, False),
    ):
        made = kernels.attempt(node, DOUBLE if double else SINGLE, *rounded, (by,))
        if made is not None:
            opinions.append((by, double, made.outputs))
    shared = [sum(not differ(mine, other) for _, _, other in opinions) for _, _, mine in opinions]
    by, double, local = opinions[shared.index(max(shared))]
    sides = [
        f"{name} in {'double' if wide else 'single'} precision {'agrees' if not differ(local, other) else 'differs'}"
        for name, wide, other in opinions
    ]
    text = f"{node.op_type} {node.name or node.output[0]!r}: {by} is followed: {', '.join(sides)}"
    single = kernels.attempt(node, SINGLE, *rounded, (by,))
    if single is None or differ(single.outputs, local):
        # the draws have to follow the same opinion, whatever precision it is computed in
        first = next((n for n, wide, other in opinions if not wide and not differ(local, other)), by)
        single = kernels.attempt(node, SINGLE, *rounded, (first,)) or kernels.single(node, *rounded)
    wide = kernels.double(node, *exact, (by,)) if double else None
    precise = wide is not None
    reference = wide.outputs if wide else [None if a is None else as_working(a, DOUBLE) for a in local]
    return Opinion(
        single=single.outputs,
        single_by=single.by,
        reference=reference,
        reference_by=by,
        double=precise,
        dispute=text,
    )


def _doubles_err(
    kernels: Kernels,
    node: onnx.NodeProto,
    exact: tuple[Arrays, Mapping[str, Array]],
    by: str,
    reference: Arrays,
    local: Arrays,
) -> bool | None:
    """Whether two implementations differ in a node of doubles, for which there is nothing more precise."""
    if not any(a is not None and a.dtype == DOUBLE for a in local):
        return None
    other = kernels.double(node, *exact, (DEFINITIONS if by == ONNXRUNTIME else ONNXRUNTIME,))
    if other is None:
        return None
    return not all(
        a is None or b is None or (a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))
        for a, b in zip(reference, other.outputs, strict=True)
    )


def differ(left: Arrays, right: Arrays) -> float:
    """By how much outputs differ, relative to their magnitude, where rounding does not explain it; else 0."""
    worst = 0.0
    for a, b in zip(left, right, strict=True):
        if a is None or b is None or not (a.size or b.size):
            continue
        if a.shape != b.shape:
            return np.inf
        with np.errstate(all="ignore"):
            x, y = a.astype(SINGLE), b.astype(SINGLE)  # beyond single precision both are infinite
            odd = ~(np.isfinite(x) & np.isfinite(y))
            if odd.any() and not np.array_equal(x[odd], y[odd], equal_nan=True):
                return np.inf
            scale = float(np.abs(y[~odd]).max(initial=0.0))
            off = float(np.abs(x[~odd] - y[~odd]).max(initial=0.0))
        relative = off / scale if scale else off
        worst = max(worst, relative if relative > DISPUTED else 0.0)
    return worst
