"""Tells rounding from error: are these outputs those of this model?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np

from smartmem_rules.checking.bounds import Judgement, judge
from smartmem_rules.checking.kernels import NoKernelError
from smartmem_rules.checking.own_references import references_of
from smartmem_rules.checking.walk import NOISE, Sampled, Walk, Walker
from smartmem_rules.checking.whole import run_whole
from smartmem_rules.graph.loading import ModelSource
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.rulebase.kept import KeepRules
from smartmem_rules.runtime.reference import Check, NoReferenceError
from smartmem_rules.tensor.primitives import Array

_WALKS = ((4, 1.0), (8, 1.0), (16, 2.0))
"""Draws of each walk, and by how much more its noise is.  Right outputs nearly always pass with the first; the others
are for choices that rounding decides, which have to be seen going both ways."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether outputs are right.

    Attributes:
        passed: False if an element is off by more than rounding explains; None if rounding alone may change an output
            so much that nothing can be said, or no reference could be computed.
        reference: what computed the reference: `onnxruntime`, `definitions`, `numpy`, ..., joined by ` + `.
        precision: `double`, or `double but for OPERATOR, ...`, or `float32`.
        bound: as `Judgement.bound`, of the output with the largest `error_to_bound`.
        draws: perturbed runs that the bound comes from.
        outputs: by name.
        notes: what the reader should know, for example nodes that two implementations compute differently.
        reason: why `passed` is not True.
    """

    passed: bool | None
    reference: str
    precision: str
    max_relative_error: float | None
    bound: float | None
    error_to_bound: float | None
    draws: int
    seed: int
    outputs: dict[str, Judgement]
    notes: tuple[str, ...] = ()
    reason: str = ""


@lru_cache(maxsize=1)
def _shipped() -> KeepRules:
    return load_rules([])


class Comparer:
    """A model that outputs are compared with; each comparison walks through the model at least once."""

    def __init__(self, model: ModelSource, base: KeepRules | None = None) -> None:
        """Args:
        model: a path, the bytes of a file or a ModelProto.
        base: the operators' definitions, for nodes that ONNX Runtime does not compute in double precision; by default
            those that come with the project.

        Raises:
            GraphError: the model is damaged or its data are missing.
        """
        definitions: Callable[[], KeepRules] = _shipped if base is None else lambda: base
        self._walker = Walker(model, definitions, {} if base is None else references_of(base))

    def compare(
        self, feeds: Mapping[str, Array], outputs: Mapping[str, Array], dtype: str = "float32", seed: int = 0
    ) -> Verdict:
        """Judge outputs.

        Args:
            feeds: the inputs that they were computed for.
            outputs: arrays by name; all or some of the model's outputs.
            dtype: the element type in which the plan stores floats: float32, float16 or bfloat16.
            seed: of the draws.

        Raises:
            GraphError: an input is missing, or a weight cannot be read.
            OwnReferenceError: the numpy function that a rule file names for an operator cannot be called.
        """
        known = {name: array for name, array in outputs.items() if name in self._walker.outputs}
        gathered: dict[str, tuple[Sampled, float]] = {}
        total = 0
        verdict = _none(seed, "nothing was compared")
        for number, (draws, factor) in enumerate(_WALKS):
            how = (draws, seed + number, dtype, NOISE * factor)
            try:
                walk = self._run(feeds, *how)
            except NoKernelError as error:
                return _none(seed, str(error))
            total += walk.draws
            for name in known:
                gathered[name] = _joined(gathered.get(name), walk.outputs[name], factor)
            verdict = self._verdict(outputs, gathered, walk, dtype, total, seed)
            if verdict.passed is not False or len(known) < len(outputs):
                break
        return verdict

    def in_doubles(self, feeds: Mapping[str, Array]) -> dict[str, Array] | None:
        """The outputs in double precision, None where some node is computed in single precision only.

        The exceptions are those of `compare`.
        """
        try:
            walk = self._walker.run(feeds, draws=1, seed=0)  # without draws, values are doubles of the model itself
        except NoKernelError:
            return None
        return None if walk.single else {name: sampled.reference for name, sampled in walk.outputs.items()}

    def _run(self, feeds: Mapping[str, Array], draws: int, seed: int, dtype: str, noise: float) -> Walk:
        """A walk, or the model as a whole where some node is not computed alone."""
        try:
            return self._walker.run(feeds, draws, seed, dtype, noise)
        except NoKernelError as reason:
            try:
                return run_whole(self._walker.model, feeds, draws, seed, dtype, noise)
            except NoKernelError as error:
                raise NoKernelError(f"{reason}; the whole model by {error}") from error

    def _verdict(
        self,
        outputs: Mapping[str, Array],
        gathered: Mapping[str, tuple[Sampled, float]],
        walk: Walk,
        dtype: str,
        draws: int,
        seed: int,
    ) -> Verdict:
        judged = {
            name: judge(np.asarray(outputs[name]), sampled, factor, dtype)
            for name, (sampled, factor) in gathered.items()
        }
        worst = max(judged.values(), key=lambda j: (j.passed is False, j.error_to_bound), default=None)
        reasons = [f"{name}: {one.reason}" for name, one in judged.items() if one.reason]
        unknown = [name for name in outputs if name not in gathered]
        reasons += [f"the model has no output {name!r}" for name in unknown]
        states = [one.passed for one in judged.values()]
        passed = False if unknown or False in states else (None if None in states else True)
        return Verdict(
            passed=passed,
            reference=" + ".join(sorted(walk.by, key=lambda name: (-walk.by[name], name))) or "the model's constants",
            precision=_precision(walk),
            max_relative_error=max((one.max_relative_error for one in judged.values()), default=0.0),
            bound=worst.bound if worst else 0.0,
            error_to_bound=worst.error_to_bound if worst else 0.0,
            draws=draws,
            seed=seed,
            outputs=judged,
            notes=tuple(walk.disputes),
            reason="; ".join(reasons),
        )


def compare(
    model: ModelSource,
    feeds: Mapping[str, Array],
    outputs: Mapping[str, Array],
    dtype: str = "float32",
    seed: int = 0,
    base: KeepRules | None = None,
) -> Verdict:
    """Judge outputs of a model; see `Comparer`."""
    return Comparer(model, base).compare(feeds, outputs, dtype, seed)


def as_check(verdict: Verdict, tolerance: float | None = None) -> Check:
    """The verdict as a plan's report has it; a tolerance decides in place of the bounds.

    Raises:
        NoReferenceError: nothing could compute the model.
    """
    error = verdict.max_relative_error
    if error is None:
        raise NoReferenceError(f"no reference can compute this model: {verdict.reason}")
    return Check(
        reference=verdict.reference,
        max_relative_error=error,
        max_error_to_spread=max((one.max_error_to_spread for one in verdict.outputs.values()), default=0.0),
        passed=verdict.passed if tolerance is None else error <= tolerance,
        tolerance=tolerance,
        seed=verdict.seed,
        outputs={name: one.max_relative_error for name, one in verdict.outputs.items()},
        reason=verdict.reason,
        precision=verdict.precision,
        bound=verdict.bound,
        error_to_bound=verdict.error_to_bound,
        draws=verdict.draws,
        notes=verdict.notes,
    )


def _joined(before: tuple[Sampled, float] | None, walked: Sampled, factor: float) -> tuple[Sampled, float]:
    """The draws of all walks together; the noise counts as the last one's.

    A draw with less noise than the last one's has a smaller spread, which the largest spread leaves out of account.
    """
    if before is None or not walked.draws:
        return walked, factor
    return Sampled(walked.reference, (*before[0].draws, *walked.draws)), factor


def _precision(walk: Walk) -> str:
    single, nodes = sum(walk.single.values()), sum(walk.by.values())
    if not single:
        return "double"
    return "float32" if single == nodes else f"double but for {', '.join(sorted(walk.single))}"


def _none(seed: int, reason: str) -> Verdict:
    return Verdict(
        passed=None,
        reference="none",
        precision="none",
        max_relative_error=None,
        bound=None,
        error_to_bound=None,
        draws=0,
        seed=seed,
        outputs={},
        reason=reason,
    )
