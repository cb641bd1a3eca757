"""Draws shapes and attributes of operands from the signatures of operators."""

from __future__ import annotations

import math
import random
from bisect import bisect
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TypeVar

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.by_identity import ByIdentity
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.binding import DTYPE_CLASSES, declared
from smartmem_rules.tensor.builtins import ConstantTensor, DefinitionError, Unsupported, Value, integers
from smartmem_rules.tensor.definitions.values import Scope, evaluate
from smartmem_rules.verification.instances.roles import AXES, BOUND, PERMUTATION, Role

EXTENTS = (1, 2, 3, 4, 5, 7, 8, 12, 16)
_EXTENT_WEIGHTS = tuple(accumulate((50, 60, 60, 25, 35, 20, 10, 5, 5)))
"""Added up, as all weights here: so that a draw need not."""
RANKS = (0, 1, 2, 3, 4, 5, 6)
_RANK_WEIGHTS = tuple(accumulate((6, 22, 28, 22, 14, 4, 4)))
_PARTNERS = ("same", "ones", "axis", "suffix", "some", "more", "fresh")
_PARTNER_WEIGHTS = tuple(accumulate((34, 12, 17, 8, 18, 5, 6)))
_LISTS = ("factors", "small", "offset", "offsets", "margins", "partner", "parts", "one")
_LIST_WEIGHTS = tuple(accumulate((20, 15, 22, 8, 12, 8, 12, 8)))
_PART_WEIGHTS = tuple(accumulate((2, 2, 2, 1, 1, 1, 30, 1)))
_JOINT_WEIGHTS = tuple(accumulate((5, 10, 5, 30, 30, 8, 4, 4)))
_NO_AXES = 0.04
"""The share of lists of axes that name none: some operators take all of them then, others none."""
_ALL_AXES = 0.6
"""The share of lists of axes that name all, in any order, where all attributes of an operator are drawn together."""
MOST_ELEMENTS = 120
FAR = 9 * 10**17
DYADIC = (0.5, 2.0, -1.5, 1.0, 0.25, 3.0, -1.0, 0.75, 4.0, -0.5, 1.25, 0.0)
"""Floats whose sums and products are exact."""

LONG = (130, 200, 257, 300)
_MOST_NAMED = 4096

_Kind = TypeVar("_Kind")
Shape = tuple[int, ...]
Extents = dict[str, Value]


def formals_of(operator: ast.Operator, count: int) -> list[ast.Input] | None:
    """The formal of each of `count` run-time operands, None where the overload takes fewer."""
    formals = [i for i in operator.inputs if i.constant is None]
    if formals and formals[-1].variadic:
        formals += [formals[-1]] * (count - len(formals))
    return formals[:count] if len(formals) >= count else None


def dtypes_of(operator: ast.Operator, formal: ast.Input) -> tuple[str, ...]:
    """The element types that a formal admits."""
    assert formal.type is not None
    name = formal.type.dtype
    return declared(operator).dtypes.get(name) or DTYPE_CLASSES.get(name, DTYPE_CLASSES["number"])


def bind_extents(formal: ast.Input | ast.Output, shape: Shape, known: Extents) -> None:
    """Note what a known operand or result says about the names of the signature."""
    splats, items = _ITEMS.get(formal, _items_of)
    width = len(shape) - (len(items) - splats)
    if width < 0 or splats > 1:
        return
    axis = 0
    for is_list, name in items:
        if is_list:
            if name is not None:
                known.setdefault(name, shape[axis : axis + width])
            axis += width
        else:
            if name is not None and axis < len(shape):
                known.setdefault(name, shape[axis])
            axis += 1


_Items = tuple[int, tuple[tuple[bool, str | None], ...]]
_ITEMS: ByIdentity[ast.Input | ast.Output, _Items] = ByIdentity(1 << 13)


def _items_of(formal: ast.Input | ast.Output) -> _Items:
    """How many lists of extents a shape of a signature has, and of each item whether it is one, and its name."""
    assert formal.type is not None
    found: list[tuple[bool, str | None]] = []
    for item in formal.type.shape:
        extent = item.operand if isinstance(item, ast.Splat) else item
        found.append((isinstance(item, ast.Splat), extent.id if isinstance(extent, ast.Name) else None))
    return sum(is_list for is_list, _ in found), tuple(found)


def extents_of(literals: Sequence[float]) -> tuple[int, ...]:
    """Extents made of a rule's numbers: themselves, their neighbours, multiples."""
    whole = {int(n) for n in literals if n == int(n) and 7 < n <= _MOST_NAMED}
    return tuple(sorted({m for n in whole for m in (n, n, n - 1, n + 1, 2 * n) if 0 < m <= _MOST_NAMED}))


@dataclass
class Draws:
    """Random choices; `seen` holds the shapes that a case has already, which others like to equal."""

    random: random.Random
    named: Sequence[int] = ()
    """Extents that the rule speaks of."""
    alike: int = 0
    """The one extent of all axes, while an instance is drawn that hides no axis mistaken for another; else 0."""

    word: tuple[str, str | int] | None = None
    """An attribute and the word or number that it is wherever it is drawn."""

    aimed: tuple[str, str] | None = None
    """The path of an operator and an attribute that the pattern leaves open, which is there while this is set."""

    jointly: str | None = None
    """The path of an operator of which all attributes that the pattern leaves open are there while this is set."""

    long: bool = False
    """Whether shapes have an axis of more elements than a byte counts."""

    def weighted(self, kinds: Sequence[_Kind], weights: Sequence[int]) -> _Kind:
        """What `random.choices` draws, without what it looks at each time."""
        return kinds[bisect(weights, self.random.random() * weights[-1], 0, len(kinds) - 1)]

    def extent(self, near: Sequence[int] = ()) -> int:
        """An extent; some equal one that is there."""
        if self.alike:
            return self.alike
        if self.long and self.random.random() < 0.3:
            return self.random.choice(LONG)
        if self.named and self.random.random() < 0.3:
            return self.random.choice(self.named)
        if near and self.random.random() < 0.55:
            return self.random.choice(list(near))
        return self.weighted(EXTENTS, _EXTENT_WEIGHTS)

    def extents(self, rank: int) -> Shape:
        """A list of extents of a bounded product; equal ones hide no axis that is mistaken for another."""
        if self.alike:
            return (self.alike,) * rank
        if self.long and rank > 2:
            axis = self.random.randrange(rank)
            return tuple(self.random.choice(LONG) if a == axis else 1 for a in range(rank))
        if 0 < rank < 3 and (self.long or self.random.random() < 0.03):
            # more elements than a byte counts
            long = self.random.choice(LONG)
            return self.random.choice(((long, 1), (2, long), (1, long)))[:rank] if rank == 2 else (long,)
        if rank > 1 and self.random.random() < 0.22:
            return (self.random.choice((2, 2, 3) if rank < 5 else (2,)),) * rank
        while True:
            shape = tuple(self.extent() for _ in range(rank))
            if math.prod(shape) <= max(MOST_ELEMENTS, 8 * max(self.named, default=0)):
                return shape

    def shape(self, formal: ast.Input, known: Extents, seen: Sequence[Shape]) -> Shape:
        """A shape for a formal, given what other operands bound; binds its names too."""
        assert formal.type is not None
        items = formal.type.shape
        splats = sum(isinstance(item, ast.Splat) for item in items)
        if seen and splats and self.random.random() < 0.2:
            fitting = [s for s in seen if len(s) >= len(items) - splats]
            if fitting and all(isinstance(i, ast.Splat) for i in items):
                shape = self.random.choice(fitting)
                bind_extents(formal, shape, known)
                return shape
        shape = ()
        near = [n for v in known.values() for n in (v if isinstance(v, tuple) else (v,)) if isinstance(n, int)]
        near += [n for s in seen for n in s if n > 1]
        for item in items:
            if isinstance(item, ast.Splat):
                shape += self._list(item.operand, known, len(items) - 1)
            elif isinstance(item, ast.Name):
                value = known.setdefault(item.id, self.extent(near))
                shape += (value if isinstance(value, int) else 1,)
            elif isinstance(item, ast.Number):
                shape += (int(item.value),)
            else:
                shape += (self.extent(near),)
        return shape

    def _list(self, pattern: ast.Expression, known: Extents, others: int) -> Shape:
        if not isinstance(pattern, ast.Name):
            return ()
        bound = known.get(pattern.id)
        if isinstance(bound, tuple):
            return integers(bound)
        partners = [integers(v) for v in known.values() if isinstance(v, tuple)]
        if partners:
            shape = self.partner(self.random.choice(partners))
        else:
            rank = self.weighted(RANKS, _RANK_WEIGHTS)
            if self.alike and others:
                rank = others + self.random.randint(0, 2)
            shape = self.extents(max(0, rank - others))
        known[pattern.id] = shape
        return shape

    def partner(self, shape: Shape) -> Shape:
        """A list that is related to another: equal, broadcast to it, one of its axes."""
        rank = len(shape)
        kind = self.weighted(_PARTNERS, _PARTNER_WEIGHTS)
        match kind:
            case "same":
                return shape
            case "ones":
                return (1,) * self.random.randint(0, rank)
            case "axis" if rank:
                axis = self.random.randrange(rank)
                kept = tuple(n if a == axis else 1 for a, n in enumerate(shape))
                return kept[self.random.choice((0, axis)) :]
            case "suffix":
                return shape[self.random.randint(0, rank) :]
            case "some":
                kept = tuple(n if self.random.random() < 0.6 else 1 for n in shape)
                return kept[self.random.choice((0, 0, self.random.randint(0, rank))) :]
            case "more" if rank < 5:
                return (self.extent(), *shape)
            case _:
                return self.extents(min(rank, 4))

    # --- attributes ---

    def attribute(
        self,
        formal: ast.Attribute | ast.Input,
        role: Role,
        shapes: Sequence[Shape],
        known: Extents,
        scope: Callable[[], Scope],
        count: int,
    ) -> Value:
        """A value for an attribute or compile-time operand, None to leave it out.

        Args:
            scope: gives what the default of a formal may ask.
        """
        kind = formal.kind if isinstance(formal, ast.Attribute) else formal.constant
        default = self._default(formal, known, scope)
        rank = max((len(s) for s in shapes), default=0)
        match kind:
            case "string" | "int" if self.word is not None and self.word[0] == formal.name:
                return self.word[1]
            case "string":
                words = sorted(w for w in role.literals if isinstance(w, str))
                return self.random.choice(words) if words else default
            case "bool":
                return self.random.random() < 0.5
            case "int":
                return self._integer(role, rank, default)
            case "float":
                return self._float(default) if self.word is None else self.random.choice((*DYADIC, -0.5, -1.5, -2.0))
            case "ints":
                return self._integers(role, shapes, rank, default, count)
            case "floats":
                shape = max(shapes, key=len, default=())
                if self.random.random() < (0.15 if self.word is None else 0.5):
                    return (*self._some(shape, (-0.25, 0.0, 0.25)), *self._some(shape, (0.5, 1.0, 1.5)))
                return tuple(self.random.choice((1.0, 2.0, 3.0, *((0.5,) if n % 2 == 0 else ()))) for n in shape)
            case "tensor":
                return self._table(shapes)
        return None

    def _some(self, shape: Shape, numbers: Sequence[float]) -> tuple[float, ...]:
        """One of the numbers for each axis."""
        return tuple(self.random.choice(numbers) for _ in shape)

    def _default(self, formal: ast.Attribute | ast.Input, known: Extents, scope: Callable[[], Scope]) -> Value:
        if formal.default is None or isinstance(formal.default, ast.Number):
            return None if formal.default is None else formal.default.value
        try:
            return evaluate(formal.default, scope().with_values(**known))
        except (DefinitionError, Unsupported):
            return None

    def _integer(self, role: Role, rank: int, default: Value) -> Value:
        numbers = sorted({int(n) for n in role.literals if not isinstance(n, str)})
        if role.use == AXES:
            reach = rank + (self.random.random() < 0.2)
            return self.random.randint(-max(reach, 1), max(reach - 1, 0))
        if numbers and self.random.random() < 0.9:
            return self.random.choice([*numbers, *(n for n in (0, 1) if len(numbers) == 1)])
        if isinstance(default, int) and self.random.random() < 0.3:
            return default
        return self.random.choice((1, 2, 3, 4, 0, -1))

    def _float(self, default: Value) -> Value:
        if isinstance(default, float) and 0 < default < 0.01:
            return self.random.choice((default, 0.0009765625, 0.0625))
        return self.random.choice(DYADIC)

    def _integers(self, role: Role, shapes: Sequence[Shape], rank: int, default: Value, count: int) -> Value:
        if role.use == PERMUTATION:
            return tuple(self.random.sample(range(rank), rank))
        if role.use == AXES:
            if self.random.random() < _NO_AXES:
                return ()
            if self.jointly is not None and self.random.random() < _ALL_AXES:
                return tuple(self.random.sample(range(rank), rank))
            number = min(rank, self.random.choice((1, 1, 1, 2, 2, 3)))
            single = [a for s in shapes if len(s) == rank for a, n in enumerate(s) if n == 1]
            if single and self.random.random() < 0.3:
                return tuple(a - rank if self.random.random() < 0.35 else a for a in dict.fromkeys(single[:number]))
            axes = self.random.sample(range(rank), number)
            if self.random.random() < 0.3:
                axes = list(range(rank - number, rank))
            return tuple(a - rank if self.random.random() < 0.35 else a for a in axes)
        if isinstance(default, tuple) and default and self.random.random() < 0.9:
            if all(v == 1 for v in default):
                return tuple(self.random.choice((1, 2, 3)) for _ in default)
            if all(v == 0 for v in default):
                return tuple(self.random.choice((0, 1, 2)) for _ in default)
            return None
        if role.use == BOUND and self.random.random() < 0.2:
            return (self.random.choice((FAR, -FAR)),)
        return self._list_for(self.random.choice(list(shapes) or [()]), rank, count)

    def _list_for(self, shape: Shape, rank: int, count: int) -> Value:
        elements, some = math.prod(shape), self.random.random
        weights = _PART_WEIGHTS if count > 1 else _LIST_WEIGHTS if self.jointly is None else _JOINT_WEIGHTS
        match self.weighted(_LISTS, weights):
            case "factors":
                return self.factors(elements)
            case "small":
                return tuple(
                    self.random.choice((1, 2, 3)) for _ in range(self.random.choice((1, rank, max(1, rank - 2))))
                )
            case "offset":
                extent = self.random.choice(shape) if shape else 1
                return (self.random.randint(-extent, extent),)
            case "offsets":
                return tuple(self.random.randint(-n, n) for n in shape)
            case "margins":
                if self.jointly is not None:
                    return self._margins_alike(len(shape))
                margins = [self.random.choice((0, 0, 1, 2, 3, -1)) for _ in range(2 * len(shape))]
                return tuple(max(m, 1 - shape[i % len(shape)]) for i, m in enumerate(margins))
            case "partner":
                other = self.partner(shape)
                return tuple(max(n, m) for n, m in zip(other, shape, strict=False)) if some() < 0.7 else other
            case "parts":
                extent = self.random.choice(shape) if shape else 1
                return self._parts(extent, max(1, count))
            case _:
                return (self.random.choice((0, 1, -1, 2)),)

    def _margins_alike(self, rank: int) -> Shape:
        """Margins of which both ends of each axis have one sum: margins of exchanged axes give the same shape."""
        total = self.random.choice((1, 2, 3))
        begins = [self.random.randint(0, total) for _ in range(rank)]
        return (*begins, *(total - begin for begin in begins))

    def factors(self, elements: int) -> Shape:
        """A shape of so many elements; one extent may be left to be computed."""
        rest, shape = elements, []
        for _ in range(self.random.randint(0, 4)):
            factor = self.random.choice(divisors(rest) or (1,))
            shape.append(factor)
            rest //= max(1, factor)
        shape.append(rest)
        self.random.shuffle(shape)
        if self.random.random() < 0.4:
            shape[self.random.randrange(len(shape))] = -1
        return tuple(shape)

    def _parts(self, extent: int, count: int) -> Shape:
        cuts = sorted(self.random.randint(0, extent) for _ in range(count - 1))
        return tuple(b - a for a, b in zip([0, *cuts], [*cuts, extent], strict=True))

    def _table(self, shapes: Sequence[Shape]) -> Value:
        shape = self.extents(self.random.choice((0, 1, 1, 2)))
        reach = max(1, min((n for s in shapes for n in s), default=1))
        return ConstantTensor(shape, tuple(self.random.randint(-reach, reach - 1) for _ in range(math.prod(shape))))


@lru_cache(maxsize=4096)
def divisors(number: int) -> tuple[int, ...]:
    """The twelve least divisors; of 0, which all numbers divide, the first one."""
    return tuple([n for n in range(1, max(1, number) + 1) if number % n == 0][:12])
