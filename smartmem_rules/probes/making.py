"""Probes for the kernels of a plan: contents of their arguments, and what must be there afterwards."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType

import numpy as np

from smartmem_rules.plan.artefact import Enqueue, Plan
from smartmem_rules.plan.kernel.launch import Ordered, Recorded
from smartmem_rules.plan.kernel.model import Stored
from smartmem_rules.plan.kernel.packing import pack
from smartmem_rules.plan.probe import GIVEN, OWN, SIGNS, UNSET, Answer, Filling, Probe, Rows, signs
from smartmem_rules.probes.contents import (
    computes_factors,
    contents,
    excludes,
    exponent_of,
    given_constants,
    index_bounds,
    replaceable,
)
from smartmem_rules.probes.evaluation import Unanswered, computed
from smartmem_rules.probes.exactness import Grid, exact_stores, grid_of
from smartmem_rules.probes.peaks import Peaks, peak_contents, peaks_of, questions_of
from smartmem_rules.provenance.kernels import claim_of
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.expr import reads
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.primitives import Array, storage_dtype

_TOLERANCES = {"float16": 2.0**-8, "bfloat16": 2.0**-5}
"""How far an element may be from what is expected where arithmetic rounds, over the largest that is expected."""
_TOLERANCE = 2.0**-16
_ROUNDINGS = 32
"""How many times farther apart another order of sums may be than single from double precision."""
_ROUNDINGS_OF_STEPS = 4
"""The same for recurrences that hand halves on, over what rounding all of these does."""
_LOOSEST = 2.0**-6
"""The largest bound, over the largest element, for which a question is worth asking."""
_USUAL = 0.99
"""The share of elements for which rounding decides nothing; of the others, too many cannot be asked."""
_QUESTIONS = ((1 << 12, 8), (1 << 15, 4), (1 << 18, 2))
"""Of how many elements a kernel's results are at most, and how many questions it is asked; one beyond."""
_PACKED = re.compile(r"@\d+$")


@dataclass(frozen=True, kw_only=True)
class Unasked:
    """A kernel without a probe.

    Attributes:
        launches: the numbers of those that run it.
        reason: why nothing is asked.
    """

    launches: tuple[int, ...]
    reason: str


@dataclass(frozen=True, kw_only=True)
class Probes:
    """What the kernels of a plan are asked.

    Attributes:
        probes: for each kernel that differs from all before it, one after the other.
        unasked: the kernels whose answers are not known.
    """

    probes: tuple[Probe, ...]
    unasked: tuple[Unasked, ...]


def probes_of(plan: Plan, tensors: Mapping[str, Stored], constants: Mapping[str, Array]) -> Probes:
    """A probe for each different kernel of a plan, which was just made.

    Args:
        tensors: those of the plan, and those of which launches keep a part to themselves.
        constants: the values of the model's constants by name, as the kernels' expressions read them.
    """
    probes: list[Probe] = []
    unasked: list[Unasked] = []
    for launches in _alike(plan):
        try:
            probes += _Maker(plan, tensors, constants, launches).probes()
        except Unanswered as reason:
            unasked.append(Unasked(launches=launches, reason=str(reason)))
    return Probes(probes=tuple(probes), unasked=tuple(unasked))


def probe_of(
    plan: Plan,
    tensors: Mapping[str, Stored],
    constants: Mapping[str, Array],
    number: int,
    held: Mapping[str, Array],
) -> Probe:
    """The probe of one launch that has the model's own constants, for what the other tensors that it reads hold.

    Args:
        held: what these hold, in their shapes.

    Raises:
        Unanswered: what its kernels compute is not known.
    """
    return _Maker(plan, tensors, constants, (number,)).real(held)


def _alike(plan: Plan) -> list[tuple[int, ...]]:
    """The numbers of the launches, those together that run the same text over tensors of the same types."""
    groups: dict[object, list[int]] = {}
    for number, enqueue in enumerate(plan.enqueues):
        groups.setdefault(_kind(plan, enqueue), []).append(number)
    return [tuple(numbers) for numbers in groups.values()]


def _kind(plan: Plan, enqueue: Enqueue) -> object:
    source = enqueue.source
    arguments = tuple(
        (a.access, t.role == "constant", t.type.dtype, t.type.shape, t.layout, t.storage)
        for a in source.arguments
        for t in (plan.tensors[a.tensor],)
    )
    return source.entry, source.text, source.options, source.global_size, source.local_size, arguments


class _Maker:
    """Makes the probe of launches that are alike, from the first of them."""

    def __init__(
        self, plan: Plan, tensors: Mapping[str, Stored], constants: Mapping[str, Array], launches: tuple[int, ...]
    ) -> None:
        self._plan = plan
        self._tensors = tensors
        self._constants = constants
        self._launches = launches
        self._enqueue = plan.enqueues[launches[0]]
        self._source = self._enqueue.source
        if isinstance(self._enqueue.launch, Recorded):
            raise Unanswered("a plan from a file has no expressions")
        if self._source.dimensions or any(map(is_symbolic, self._source.global_size)):
            raise Unanswered("its extents are open")
        self._claims = [claim_of(kernel) for kernel in self._enqueue.launch.kernels]

    def probes(self) -> list[Probe]:
        """The probes: the fewer elements a kernel writes, the more, because each element then shows less of it.

        Raises:
            Unanswered: what the kernel computes is not known.
        """
        first = self._probe(0)
        elements = sum(answer.rows.numbers.size * answer.rows.different.shape[1] for answer in first.answers)
        count = next((count for most, count in _QUESTIONS if elements <= most), 1)
        return [first, *map(self._probe, range(1, count)), *self._of_peaks()]

    def _of_peaks(self) -> list[Probe]:
        """Questions where the kernel looks for a largest element; none where rounding would decide the answer."""
        found = peaks_of(self._claims)
        tolerance = 0.0 if all(peaks.direct for peaks in found.values()) else _LOOSEST
        asked = []
        for variant in range(questions_of(found, self._plan.tensors)):
            try:
                asks = self._asked(variant, positive=False, peaks=found)
                probe = self._with_answers(*asks, tolerance=tolerance)
            except Unanswered:
                continue
            if _usual(probe):
                asked.append(probe)
        return asked

    def _probe(self, variant: int) -> Probe:
        fillings, values = self._asked(variant, positive=False)
        found = self._with_answers(fillings, values)
        if _usual(found):
            return found
        fillings, values = self._asked(variant, positive=True)
        return self._with_answers(fillings, values)

    def _with_answers(
        self, fillings: tuple[Filling, ...], values: Mapping[str, Array], tolerance: float = 0.0
    ) -> Probe:
        expected = computed(self._enqueue.launch, values, self._tensors)
        answers = tuple(self._answers(values, expected, tolerance))
        return Probe(launches=self._launches, fillings=fillings, answers=answers)

    def real(self, held: Mapping[str, Array]) -> Probe:
        """The probe for contents that some run had, with the constants as they are."""
        values = {**self._given, **held}
        fillings: list[Filling] = []
        for argument in self._source.arguments:
            tensor = self._plan.tensors[argument.tensor]
            if tensor.role == "constant":
                fillings.append(Filling(kind=OWN))
            elif tensor.name in held:
                fillings.append(Filling(kind=GIVEN, rows=in_memory(held[tensor.name], tensor)))
            else:
                fillings.append(Filling(kind=UNSET))
        return self._with_answers(tuple(fillings), values)

    def _asked(
        self, variant: int, positive: bool, peaks: Mapping[str, Peaks] = MappingProxyType({})
    ) -> tuple[tuple[Filling, ...], dict[str, Array]]:
        """What the arguments hold in memory, and what the kernels' expressions read."""
        launch = self._enqueue.launch
        exponents = self._exponents if replaceable(launch) else None
        values = dict(self._given) if exponents is None else self._signs(exponents)
        bounds = index_bounds(launch)
        fillings: list[Filling] = []
        for number, argument in enumerate(self._source.arguments):
            tensor = self._plan.tensors[argument.tensor]
            if tensor.role == "constant":
                exponent = None if exponents is None or argument.access == "write" else exponents.get(tensor.name)
                fillings.append(Filling(kind=OWN) if exponent is None else Filling(kind=SIGNS, exponent=exponent))
            elif argument.access == "write":
                fillings.append(Filling(kind=UNSET))
            else:
                bound = bounds.get(tensor.name)
                if tensor.name in peaks and bound is None:
                    array = peak_contents(tensor, number, variant, peaks[tensor.name])
                else:
                    array = contents(tensor, number, variant, bound, positive)
                values[tensor.name] = array
                fillings.append(Filling(kind=GIVEN, rows=in_memory(array, tensor)))
        return tuple(fillings), values

    def _constants_read(self) -> list[str]:
        """The constants that the kernels' expressions read."""
        found = dict.fromkeys(
            read.tensor
            for claim in self._claims
            for value in claim.values
            for read in reads(value)
            if read.tensor not in claim.stages
        )
        tensors = self._tensors
        return [
            name for name in found if name in self._constants or (name in tensors and tensors[name].role == "constant")
        ]

    @cached_property
    def _given(self) -> dict[str, Array]:
        """These constants in the precision in which memory holds them, also those that only their packed form holds."""
        names = self._constants_read()
        found = given_constants(names, self._tensors, self._constants)
        packed = [storage_dtype(self._tensors[name].storage) for name in self._packed()]
        # words hold integers, and beside them scales as they are
        floats = [dtype for dtype in packed if dtype.kind == "f"]
        for name in names:
            if name not in self._tensors and floats and found[name].dtype.kind == "f":
                found[name] = found[name].astype(floats[0])
        return found

    def _packed(self) -> list[str]:
        """The tensors that hold packed factors: arguments, or parts of one."""
        launch = self._enqueue.launch
        held = launch.held if isinstance(launch, Ordered) else ()
        names = [*(a.tensor for a in self._source.arguments if a.access == "read"), *held]
        return [name for name in names if _PACKED.search(name) and self._tensors[name].role == "constant"]

    @cached_property
    def _exponents(self) -> dict[str, int]:
        """The exponents of the arguments that hold constants; packed factors share one."""
        arguments = {a.tensor for a in self._source.arguments}
        shared = exponent_of(array for name, array in self._given.items() if name not in arguments)
        own = {
            name: exponent_of([array])
            for name, array in self._given.items()
            if name in arguments and not excludes(array)
        }
        return own | dict.fromkeys(self._packed(), shared)

    def _signs(self, exponents: Mapping[str, int]) -> dict[str, Array]:
        """The constants as the probe replaces them."""
        shared = next((exponents[name] for name in self._packed()), 0)
        arguments = {a.tensor for a in self._source.arguments}
        return {
            name: array if name in arguments and name not in exponents else signs(array, exponents.get(name, shared))
            for name, array in self._given.items()
        }

    def _answers(self, values: Mapping[str, Array], expected: Mapping[str, Array], tolerance: float) -> list[Answer]:
        grids = self._grids(values)
        wide = self._in_double(values)
        steps, factors = self._narrow_steps(), self._narrow_factors()
        tolerance, roundings = max(tolerance, steps, factors), _ROUNDINGS_OF_STEPS if steps else _ROUNDINGS
        answers = []
        for number, argument in enumerate(self._source.arguments):
            tensor = self._plan.tensors[argument.tensor]
            if argument.access != "write" or tensor.name not in expected or tensor.layout.memory == "scratch":
                continue
            array, bound = expected[tensor.name], 0.0
            if tensor.name not in grids:
                array, bound = _bounded(array, wide.get(tensor.name, array), tolerance, roundings)
            if factors and array.dtype.kind == "f":  # one that became 0 makes no number of an infinity
                array = np.where(np.isfinite(array), array, array.dtype.type(np.nan))
            answers.append(Answer(argument=number, rows=in_memory(array, tensor), bound=bound))
        if not answers:
            raise Unanswered("it writes nothing that others read")
        return answers

    def _narrow_factors(self) -> float:
        """The tolerance of packed factors that were computed and then rounded, as weights of few bits are.

        Raises:
            Unanswered: rounding made some of them infinite.
        """
        packed = [self._tensors[name] for name in self._packed()]
        if not computes_factors(self._enqueue.launch) or any(storage_dtype(one.storage).kind in "iu" for one in packed):
            return 0.0  # they hold constants, or words
        narrow = [one for one in packed if one.storage in _TOLERANCES]
        if not all(one.packed is None or np.isfinite(one.packed.astype(np.float32)).all() for one in narrow):
            raise Unanswered("its factors exceed their type")
        return max((_TOLERANCES[one.storage] for one in narrow), default=0.0)

    def _narrow_steps(self) -> float:
        """The tolerance of what steps of a recurrence read of those before them, where that is halves: one of these
        may be rounded the other way, and all that follows from it is another, in whatever type it is kept."""
        scans = zip(self._enqueue.launch.kernels, self._claims, strict=True)
        stored = [
            self._tensors[store.tensor] for kernel, claim in scans if kernel.form == "scan" for store in claim.stores
        ]
        return max((_TOLERANCES.get(one.storage, 0.0) for one in stored), default=0.0)

    def _in_double(self, values: Mapping[str, Array]) -> dict[str, Array]:
        """What is expected, computed in double precision; nothing where that cannot be."""
        try:
            return computed(self._enqueue.launch, values, self._tensors, double=True)
        except Unanswered:
            return {}

    def _grids(self, values: Mapping[str, Array]) -> dict[str, Grid]:
        """The tensors that are computed exactly."""
        if self._narrow_factors():
            return {}
        storage = {name: tensor.storage for name, tensor in self._tensors.items()}
        grids = {name: grid for name, array in values.items() if (grid := grid_of(array)) is not None}
        for kernel, claim in zip(self._enqueue.launch.kernels, self._claims, strict=True):
            adds = kernel.template == "winograd" or kernel.form == "scan"  # what the expressions do not have
            exact = {} if adds else exact_stores(claim, grids, storage)
            stored = {store.tensor for store in claim.stores}
            grids = {name: grid for name, grid in grids.items() if name not in stored} | exact
        return grids


def _usual(probe: Probe) -> bool:
    """Whether nearly all elements of the answers are numbers that can be compared."""
    floats = [a.rows.different for a in probe.answers if a.rows.different.dtype.kind == "f"]
    return all(np.isfinite(array).mean() >= _USUAL for array in floats)


def _bounded(single: Array, double: Array, tolerance: float, roundings: int) -> tuple[Array, float]:
    """What is expected where arithmetic rounds, and how far an element may be from that.

    Args:
        tolerance: a share of the largest element that is no difference yet, if it is more than rounding is.
        roundings: how much more than the two precisions differ by an element may be off.

    Elements that the precision of the arithmetic decides (the larger of two near ones, a rounded half) become no
    numbers, which are not compared.

    Raises:
        Unanswered: these are too many, or such elements are integers.
    """
    apart = np.abs(single.astype(np.float64) - double.astype(np.float64))
    if single.dtype.kind in "iub":
        if apart.any():
            raise Unanswered("rounding decides an integer")
        return single, 0.0
    finite = np.isfinite(apart)
    largest = float(np.abs(double[finite].astype(np.float64)).max(initial=0.0))
    usual = float(np.quantile(apart[finite], _USUAL)) if finite.any() else 0.0
    least = largest * max(_TOLERANCES.get(single.dtype.name, _TOLERANCE), tolerance)
    bound = max(least, usual * roundings)
    if bound > max(least, largest * _LOOSEST):
        raise Unanswered("rounding grows too much")
    undecided = finite & (apart > bound / 2)
    if np.count_nonzero(undecided) > (1 - _USUAL) * apart.size:
        raise Unanswered("rounding decides too much")
    return (np.where(undecided, single.dtype.type(np.nan), double) if undecided.any() else double), bound


def in_memory(array: Array, tensor: Stored) -> Rows:
    """A tensor's elements in the order of its memory, cut along its last axis there."""
    packed = pack(array, tensor.layout, tensor.storage)
    if tensor.layout.memory == "image":
        width = packed.shape[1] * 4
    else:
        last = tensor.layout.order[-1] if tensor.layout.order else None
        width = 1 if last is None else max(1, array.shape[last])
    return Rows.of(packed, width)
