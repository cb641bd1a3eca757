"""Computes both sides of a rule at one given instance: what pasted counterexamples and saved ones call."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.verification.instances.cases import Search
from smartmem_rules.verification.semantics.domains import Array, Domain, Rationals
from smartmem_rules.verification.semantics.terms import compute, leaves
from smartmem_rules.verification.trials.rewrites import directions


class NoLongerApplies(ValueError):
    """The rule was changed: it does not take the instance of a counterexample any more."""


def rule_files(test: str, folder: str, names: Sequence[str], texts: Mapping[str, str]) -> list[str]:
    """The rule files of a saved counterexample: as they are now, or as they were where they are not to be found.

    Args:
        test: the file of the test.
        folder: where the rule files lie, from the folder of the test.
        names: the files that were verified, in that folder.
        texts: these files and those that they import, as they were when the counterexample was found.
    """
    place = Path(test).resolve().parent / folder
    if all((place / name).is_file() for name in texts):
        return [str(place / name) for name in names]
    kept = Path(tempfile.mkdtemp(prefix="smartmem-rules-"))
    atexit.register(shutil.rmtree, kept, ignore_errors=True)
    for name, text in texts.items():
        path = kept / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return [str(kept / name) for name in names]


def agree(left: Array, right: Array, tolerance: float = 0.0) -> bool:
    """Whether two results are the same: the same NaN, infinities and signs of zero, and numbers within a tolerance."""
    if left.shape != right.shape or left.dtype == bool or right.dtype == bool or tolerance == 0 == _floating(left):
        return left.shape == right.shape and bool(np.all(left == right))
    a, b = left.astype(np.float64), right.astype(np.float64)
    with np.errstate(all="ignore"):
        close = np.abs(a - b) <= tolerance * np.maximum(np.abs(a), np.abs(b))
    zeros = (a == 0) & (b == 0)
    same = np.where(zeros, (np.signbit(a) == np.signbit(b)) | (not _floating(left)), close)
    return bool(np.all(same | (np.isnan(a) & np.isnan(b)) | (np.isinf(a) & (a == b))))


def _floating(values: Array) -> bool:
    return values.dtype.kind == "f"


def both_sides(
    files: Sequence[str | Path], rule: str, choices: Mapping[str, Any], tensors: Mapping[str, Array]
) -> tuple[Array, Array]:
    """The two sides of a rewrite at one instance.

    Args:
        files: rule files beside the built-in ones.
        choices: what makes up the instance, as a counterexample prints it.
        tensors: elements; Python numbers are computed exactly, all others by numpy.

    Raises:
        ValueError: there is no such rule.
        NoLongerApplies: the rule does not take the instance any more.
    """
    base = load_rules(files)
    instances = Instances(base)
    found = [r for r in base.rewrites if r.name == rule]
    if not found:
        raise ValueError(f"there is no rewrite {rule}")
    for left, right in directions(found[0]):
        case = Search(found[0], left, right, instances, 0).build(dict(choices))
        if case is not None and case.right is not None and case.satisfied:
            domain = Rationals() if any(t.dtype == object for t in tensors.values()) else Domain()
            values: dict[str, tuple[Array, ...]] = {name: (array,) for name, array in tensors.items()}
            for side in (case.left, case.right):
                for name, leaf in leaves(side).items():
                    if name not in values and leaf.number is not None:
                        (number,) = domain.constant(leaf.number, leaf.type.dtype)
                        values[name] = (np.broadcast_to(number, leaf.type.shape),)
            sides = [compute(side, values, domain)[0] for side in (case.left, case.right)]
            return np.broadcast_to(sides[0], case.left.type.shape), np.broadcast_to(sides[1], case.left.type.shape)
    raise NoLongerApplies(f"the instance does not satisfy the rule {rule} any more")
