"""Which outputs of an implementation are wrong: compared element by element with what was expected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from smartmem_rules.fuzzing.case import Array
from smartmem_rules.fuzzing.expected.bounds import Expected
from smartmem_rules.fuzzing.expected.node_runner import fits
from smartmem_rules.fuzzing.expected.precisions import PRECISIONS


def differences(results: Mapping[str, Array], expected: Mapping[str, Expected]) -> dict[str, object]:
    """The outputs that are wrong, each with one line that says where and by how much."""
    wrong: dict[str, Any] = {}
    for name, wanted in expected.items():
        got = np.asarray(results[name])
        if not fits(got.shape, wanted.extents):
            wrong[name] = f"shape {got.shape}, not {wanted.value.shape}"
        elif got.dtype.name != wanted.dtype:
            wrong[name] = f"element type {got.dtype.name}, not {wanted.dtype}"
        elif got.shape == wanted.value.shape and got.size and got.dtype.kind not in "OSU":
            line = _difference(got, wanted)
            if line:
                wrong[name] = line
    return wrong


def _difference(got: Array, wanted: Expected) -> str:
    with np.errstate(all="ignore"):
        return _worst_element(got, wanted)


def _worst_element(got: Array, wanted: Expected) -> str:
    a, b = got.astype(np.float64), wanted.value.astype(np.float64)
    most = PRECISIONS[wanted.dtype].most if wanted.dtype in PRECISIONS else np.inf
    # rounding may cross the greatest number
    b = np.where(np.abs(b) > most, np.copysign(np.inf, b), b)
    off = np.abs(a - b)
    finite = np.isfinite(a) & np.isfinite(b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    at_edge = np.isfinite(wanted.bound) & (np.abs(b) + wanted.bound >= most)
    edge = at_edge & (np.abs(a) + wanted.bound >= most) & (np.sign(a) == np.sign(b))
    bad = wanted.known & ~same & ~(finite & (off <= wanted.bound)) & ~edge
    if not bad.any():
        return ""
    excess = np.where(bad, np.where(finite, off / np.maximum(wanted.bound, 1e-300), np.inf), -1.0)
    place = tuple(int(i) for i in np.unravel_index(int(np.argmax(excess)), excess.shape))
    off_by = f"{a[place]:.9g}, not {b[place]:.9g} ± {wanted.bound[place]:.2g}"
    return f"{int(bad.sum())} of {bad.size} wrong; at {place} {off_by}"
