"""Shapes with unknowns: extents and whole runs of axes stand for names, broadcasting is a join.

A `Shape` is a row of segments: an extent (`Dim`, a linear form with integer coefficients over atoms) or a run of any
number of axes (`Rest`: a name, or a function that nothing is known of).  `Join` is what shapes broadcast to; it is
associative, commutative and idempotent, so that it is the set of its operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from smartmem_rules.records import dataclass


@dataclass(frozen=True, slots=True)
class Atom:
    """An unknown: a name, or with `arguments` what is known of it only that equal arguments give equal values."""

    name: str
    arguments: tuple[object, ...] = ()
    shown: str = ""

    def __str__(self) -> str:
        return self.shown or self.name


@dataclass(frozen=True, slots=True)
class Dim:
    """constant + sum of coefficient * atom; the terms are unique and in a fixed order."""

    constant: int
    terms: tuple[tuple[Atom, int], ...] = ()

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def __str__(self) -> str:
        parts = [str(atom) if factor == 1 else f"{factor} * {atom}" for atom, factor in self.terms]
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts)


@dataclass(frozen=True, slots=True)
class Rest:
    """Any number of axes."""

    atom: Atom

    def __str__(self) -> str:
        return f"*{self.atom}"


@dataclass(frozen=True, slots=True)
class Join:
    """What shapes broadcast to; they are two or more, none of them a join or empty."""

    shapes: frozenset[Shape]

    def __str__(self) -> str:
        return f"*broadcast({', '.join(sorted(map(_bare, self.shapes)))})"


Segment = Dim | Rest | Join


@dataclass(frozen=True, slots=True)
class Shape:
    """A row of segments."""

    segments: tuple[Segment, ...] = ()

    @property
    def dims(self) -> tuple[Dim, ...] | None:
        """The extents of a shape of known rank, None for others."""
        found = tuple(segment for segment in self.segments if isinstance(segment, Dim))
        return found if len(found) == len(self.segments) else None

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.segments))}]"


def _bare(shape: Shape) -> str:
    if len(shape.segments) == 1 and isinstance(shape.segments[0], Rest):
        return str(shape.segments[0].atom)
    return str(shape)


def dim(value: int | Atom) -> Dim:
    """An extent."""
    return Dim(value) if isinstance(value, int) else Dim(0, ((value, 1),))


def add(left: Dim, right: Dim, factor: int = 1) -> Dim:
    """left + factor * right."""
    terms = dict(left.terms)
    for atom, coefficient in right.terms:
        terms[atom] = terms.get(atom, 0) + factor * coefficient
    kept = [(atom, coefficient) for atom, coefficient in terms.items() if coefficient]
    if len(kept) > 1:
        kept.sort(key=lambda term: repr(term[0]))
    return Dim(left.constant + factor * right.constant, tuple(kept))


def scale(value: Dim, factor: int) -> Dim:
    """factor * value."""
    return add(Dim(0), value, factor)


def join(shapes: Iterable[Shape]) -> Shape:
    """What shapes broadcast to, as far as it is known; they are taken to broadcast."""
    parts: set[Shape] = set()
    for shape in shapes:
        if len(shape.segments) == 1 and isinstance(shape.segments[0], Join):
            parts |= shape.segments[0].shapes
        elif shape.segments:
            parts.add(shape)
    parts -= {part for part in parts if any(_covers(other, part) for other in parts if other != part)}
    if len(parts) < 2:
        return next(iter(parts), Shape())
    known = [part.dims for part in parts]
    if all(dims is not None for dims in known):
        merged = _merged([dims for dims in known if dims is not None])
        if merged is not None:
            return Shape(merged)
    return Shape((Join(frozenset(parts)),))


def _covers(whole: Shape, part: Shape) -> bool:
    """Whether a shape broadcasts to another one whatever the unknowns: it is its end, or has 1 where it differs."""
    if len(part.segments) > len(whole.segments):
        return False
    tail = whole.segments[len(whole.segments) - len(part.segments) :]
    pairs = zip(tail, part.segments, strict=True)
    return all(one == other or (other == Dim(1) and isinstance(one, Dim)) for one, other in pairs)


def _merged(shapes: list[tuple[Dim, ...]]) -> tuple[Dim, ...] | None:
    """The extents that shapes of known rank broadcast to, None where one axis has two that may differ."""
    result: list[Dim] = []
    for axis in range(-max(map(len, shapes)), 0):
        extents = {shape[axis] for shape in shapes if len(shape) >= -axis} - {Dim(1)}
        if len(extents) > 1:
            return None
        result.append(extents.pop() if extents else Dim(1))
    return tuple(result)


def rebuilt(value: object, of_atom: Callable[[Atom], Shape | Dim | None]) -> object:
    """A value with atoms replaced, a run of axes by a shape and an extent by a dim; itself where there is none."""
    match value:
        case Shape(segments=segments):
            made: list[Segment] = []
            changed = False
            for segment in segments:
                replaced = _rebuilt_segment(segment, of_atom)
                changed = changed or len(replaced) != 1 or replaced[0] is not segment
                made.extend(replaced)
            return Shape(tuple(made)) if changed else value
        case Dim():
            return _rebuilt_dim(value, of_atom)
        case Atom():
            return _rebuilt_atom(value, of_atom)
        case tuple():
            parts = tuple(rebuilt(part, of_atom) for part in value)
            return value if all(new is old for new, old in zip(parts, value, strict=True)) else parts
        case _:
            return value


def _rebuilt_segment(segment: Segment, of_atom: Callable[[Atom], Shape | Dim | None]) -> tuple[Segment, ...]:
    match segment:
        case Rest(atom=atom):
            found = of_atom(atom)
            if isinstance(found, Shape):
                return found.segments
            made = _rebuilt_atom(atom, of_atom)
            return (segment if made is atom else Rest(made),)
        case Join(shapes=shapes):
            pairs = [(shape, rebuilt(shape, of_atom)) for shape in shapes]
            if all(new is old for old, new in pairs):
                return (segment,)
            return join(new for _, new in pairs if isinstance(new, Shape)).segments
        case Dim():
            return (_rebuilt_dim(segment, of_atom),)


def _rebuilt_dim(value: Dim, of_atom: Callable[[Atom], Shape | Dim | None]) -> Dim:
    pairs = []
    for atom, factor in value.terms:
        found = of_atom(atom)
        made = atom if found is not None else _rebuilt_atom(atom, of_atom)
        pairs.append((atom, found if isinstance(found, Dim) else dim(made), factor))
    if all(one.terms == ((atom, 1),) and one.terms[0][0] is atom for atom, one, _ in pairs):
        return value
    result = Dim(value.constant)
    for _, one, factor in pairs:
        result = add(result, one, factor)
    return result


def _rebuilt_atom(atom: Atom, of_atom: Callable[[Atom], Shape | Dim | None]) -> Atom:
    if not atom.arguments:
        return atom
    arguments = tuple(rebuilt(argument, of_atom) for argument in atom.arguments)
    if all(new is old for new, old in zip(arguments, atom.arguments, strict=True)):
        return atom
    return Atom(atom.name, arguments, atom.shown)
