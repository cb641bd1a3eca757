"""Contents by which the largest element of a reduction lies in one part after the other.

Small integers repeat, so that a maximum is found in many places, and a kernel that leaves out some columns still finds
it. A softmax hides more: any number near its maximum gives the same result. A question about peaks therefore makes few
elements so large that each row's maximum lies in one place, far above all others (exp underflows for them), and the
places differ from row to row. Where two are nearly as large, rounding decides how much of each there is in the result:
answers may differ more than others (what is looked for is no number, or another row's).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from smartmem_rules.exchange.kernels import KernelClaim
from smartmem_rules.plan.kernel.model import Stored
from smartmem_rules.probes.contents import PERIOD, contents
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Expr, Read, Reduce, children, walk
from smartmem_rules.tensor.index import Index
from smartmem_rules.tensor.primitives import Array, storage_dtype

PEAK = 256.0
"""The size of peaks: beside one, exp is 0 for the others, and halves hold sums of a few hundred of them."""
PART = 8
"""The columns of a part: no vector of a kernel has fewer, where it has any."""
_FEWEST = 2 * PART
_POOL = 64
_MOST_QUESTIONS = 8
_TURNS = 4
_DRAWN = 4
"""How often a part should hold a row's maximum, by chance."""


@dataclass(frozen=True, kw_only=True)
class Peaks:
    """How a kernel looks for the largest element of something that is computed from a tensor.

    Attributes:
        summed: the axes over which sums stand between the tensor and the reduction: all of a row is large, or nothing.
        extent: of the reduction.
    """

    summed: tuple[bool, ...]
    extent: int

    @property
    def direct(self) -> bool:
        """Whether single elements are what is compared, along the last axis."""
        return not any(self.summed)


@dataclass(frozen=True, kw_only=True)
class _Along:
    """The loops of a reduction, and those of sums inside it."""

    reduced: frozenset[Var]
    summed: frozenset[Var]
    extent: int


def peaks_of(claims: Sequence[KernelClaim]) -> dict[str, Peaks]:
    """The tensors that some kernels, one after the other, look through for a largest or smallest element."""
    found: dict[str, Peaks] = {}
    for number, claim in enumerate(claims):
        search = _Search(claims[: number + 1], found)
        for value in claim.values:
            for node in walk(value):
                if isinstance(node, Reduce) and node.kind in ("max", "min"):
                    extent = math.prod(v.extent for v in node.variables)
                    if extent >= _FEWEST:
                        along = _Along(reduced=frozenset(node.variables), summed=frozenset(), extent=extent)
                        search.follow(node.body, claim, along)
    return found


class _Search:
    """Follows what a reduction looks through back to the tensors that a launch reads."""

    def __init__(self, claims: Sequence[KernelClaim], found: dict[str, Peaks]) -> None:
        self._claims = claims
        self._found = found

    def follow(self, expr: Expr, claim: KernelClaim, along: _Along) -> None:
        match expr:
            case Read():
                self._read(expr, claim, along)
            case Reduce(kind="sum", variables=variables, body=body):
                inner = _Along(reduced=along.reduced, summed=along.summed | set(variables), extent=along.extent)
                self.follow(body, claim, inner)
            case _:
                for child in children(expr):
                    self.follow(child, claim, along)

    def _read(self, read: Read, claim: KernelClaim, along: _Along) -> None:
        reduced = [bool(index.variables & along.reduced) for index in read.indices]
        stage = claim.stages.get(read.tensor)
        if stage is not None:
            own = [frozenset({axis}) for axis in stage.axes]
            self.follow(stage.value, claim, _inside(own, read.indices, along, keep=True))
            return
        if not any(reduced):
            return
        stored = False
        for earlier in self._claims:
            for store in earlier.stores:
                if store.tensor == read.tensor and earlier is not claim:
                    own = [index.variables for index in store.indices]
                    self.follow(store.value, earlier, _inside(own, read.indices, along, keep=False))
                    stored = True
        if not stored:
            summed = tuple(
                bool(index.variables & along.summed) and not there
                for index, there in zip(read.indices, reduced, strict=True)
            )
            self._found.setdefault(read.tensor, Peaks(summed=summed, extent=along.extent))


def _inside(axes: Iterable[frozenset[Var]], indices: Sequence[Index], along: _Along, keep: bool) -> _Along:
    """The same loops as those of what is read: its own variables stand for those of the indices."""
    pairs = list(zip(axes, indices, strict=True))
    reduced = frozenset[Var]().union(*(own for own, index in pairs if index.variables & along.reduced))
    summed = frozenset[Var]().union(*(own for own, index in pairs if index.variables & along.summed))
    if keep:
        reduced, summed = reduced | along.reduced, summed | along.summed
    return _Along(reduced=reduced, summed=summed - reduced, extent=along.extent)


def questions_of(found: Mapping[str, Peaks], tensors: Mapping[str, Stored]) -> int:
    """How many questions it takes until the largest element was in each part: the fewer rows there are, the more."""
    own = [
        _questions(peaks, tensors[name].type.shape)
        for name, peaks in found.items()
        if name in tensors and tensors[name].role != "constant"
    ]
    return max(own, default=0)


def _questions(peaks: Peaks, shape: tuple[int, ...]) -> int:
    kept = math.prod(extent for gone, extent in zip(peaks.summed, shape, strict=True) if not gone)
    rows = max(1, kept // max(1, peaks.extent))
    if peaks.direct:
        return min(-(-_parts(peaks.extent) // rows), _MOST_QUESTIONS)
    return max(1, min(-(-_DRAWN * _parts(peaks.extent) // rows), _TURNS))


def peak_contents(tensor: Stored, number: int, variant: int, peaks: Peaks) -> Array:
    """What a tensor holds for a question about peaks; what is no float, as for other questions."""
    shape = tensor.type.shape
    base = contents(tensor, number, variant, None, False)
    dtype = storage_dtype(tensor.storage)
    if (dtype.kind != "f" and dtype.kind != "V") or not shape or not base.size:
        return base
    random = np.random.default_rng((PERIOD, number, variant, 1))
    if peaks.direct:
        return _single(np.resize(base.reshape(-1)[:PERIOD], shape[-1]), shape, peaks.extent, variant, random)
    kept = tuple(1 if gone else extent for gone, extent in zip(peaks.summed, shape, strict=True))
    chosen = random.random(kept) < 1 / PART
    turns = _questions(peaks, shape)
    if turns > 1:  # few rows, of which masks may leave a few to the last columns: some parts at a time
        turn = np.arange(math.prod(kept)).reshape(kept) // PART % turns == variant
        chosen = turn & (random.random(kept) < 2 / PART)
    pool = random.choice((-PEAK, PEAK), (_POOL, *_where(shape, peaks.summed)))
    large = pool[random.integers(_POOL, size=kept).reshape(-1)].reshape(*_split(shape, peaks.summed))
    large = np.moveaxis(large, range(-sum(peaks.summed), 0), [a for a, gone in enumerate(peaks.summed) if gone])
    return np.where(chosen, large, base).astype(base.dtype)


def _where(shape: tuple[int, ...], summed: tuple[bool, ...]) -> tuple[int, ...]:
    return tuple(extent for gone, extent in zip(summed, shape, strict=True) if gone)


def _split(shape: tuple[int, ...], summed: tuple[bool, ...]) -> tuple[int, ...]:
    return (*(e for gone, e in zip(summed, shape, strict=True) if not gone), *_where(shape, summed))


def _single(row: Array, shape: tuple[int, ...], extent: int, variant: int, random: np.random.Generator) -> Array:
    """Rows that repeat, with one peak in each `extent` elements: in the first part, in the last, then in the others."""
    rows = math.prod(shape[:-1])
    made = np.tile(row, (rows, 1))
    if shape[-1] == extent:
        order = np.arange(_parts(extent))
        order = np.concatenate([order[:1], order[:0:-1]]) if order.size > 1 else order
        part = order[(np.arange(rows) + variant * rows) % order.size]
        made[np.arange(rows), np.minimum(part * PART + part % PART, extent - 1)] = PEAK
    else:
        count = min(rows, _POOL * 4)
        chosen = random.random((count, shape[-1])) < 1 / extent
        made = np.where(chosen[np.arange(rows) % count], made.dtype.type(PEAK), made)
    return made.reshape(shape)


def _parts(extent: int) -> int:
    return -(-extent // PART)
