"""What is known while the sides of a rewrite are typed: which unknowns are equal, what broadcasts, which dtypes fit.

On the left side all that a match implies is assumed.  Then nothing may be assumed any more (`fix`): what the right side
needs must follow from what is known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from smartmem_rules.analysis.types.shapes import Atom, Dim, Join, Rest, Segment, Shape, add, dim, join, rebuilt
from smartmem_rules.records import dataclass


class Clash(Exception):
    """No values of the unknowns satisfy this."""


class Unproven(Exception):
    """This does not follow from what is known."""


@dataclass
class Environment:
    """The unknowns of one way to match the left side."""

    shapes: dict[str, Shape] = field(default_factory=dict)
    dims: dict[str, Dim] = field(default_factory=dict)
    dtypes: dict[str, str] = field(default_factory=dict)
    allowed: dict[str, frozenset[str]] = field(default_factory=dict)
    facts: set[object] = field(default_factory=set)
    """Conditions that hold, and functions that have a value for their arguments."""
    joins: list[frozenset[Shape]] = field(default_factory=list)
    """Shapes that broadcast with one another."""
    within: list[tuple[Shape, Shape]] = field(default_factory=list)
    """Pairs of which the first shape broadcasts to the second."""
    free: set[str] = field(default_factory=set)
    """The unknowns that may still be bound."""
    is_fixed: bool = False
    made: int = 0
    supposed: int = 0
    """Above zero while a value is looked at that may not be needed."""
    doubtful: bool = False
    """Whether such a value is one that there may not be."""

    def copy(self) -> Environment:
        """One that learns other things."""
        return Environment(
            dict(self.shapes),
            dict(self.dims),
            dict(self.dtypes),
            dict(self.allowed),
            set(self.facts),
            list(self.joins),
            list(self.within),
            set(self.free),
            self.is_fixed,
            self.made,
        )

    def fix(self) -> None:
        """From now on nothing is assumed."""
        self.is_fixed = True
        self.free = set()
        # no unknown of these is bound any more
        self.facts = {self._resolved(fact) for fact in self.facts}

    def fresh(self, name: str) -> Atom:
        """An unknown of its own."""
        self.made += 1
        atom = Atom(f"{name}#{self.made}", shown=name)
        self.free.add(atom.name)
        return atom

    # --- shapes ---

    def shape(self, value: Shape) -> Shape:
        """A shape in the words of the unknowns that are left."""
        made = self._resolved(value)
        assert isinstance(made, Shape)
        return made

    def dim(self, value: Dim) -> Dim:
        """An extent in the words of the unknowns that are left."""
        made = self._resolved(value)
        assert isinstance(made, Dim)
        return made

    def resolved(self, value: object) -> object:
        """Anything in the words of the unknowns that are left."""
        return self._resolved(value)

    def _resolved(self, value: object) -> object:
        while True:
            made = rebuilt(value, self._bound)
            if isinstance(made, Shape):
                made = self._absorbed(made)
            if made is value:
                return made
            value = made

    def _bound(self, atom: Atom) -> Shape | Dim | None:
        return self.shapes.get(atom.name) or self.dims.get(atom.name)

    def _absorbed(self, shape: Shape) -> Shape:
        if not self.within or not any(isinstance(segment, Join) for segment in shape.segments):
            return shape
        segments: list[Segment] = []
        changed = False
        for segment in shape.segments:
            kept = _without_contained(segment.shapes, self.within) if isinstance(segment, Join) else None
            if kept is None:
                segments.append(segment)
            else:
                segments.extend(join(kept).segments)
                changed = True
        return Shape(tuple(segments)) if changed else shape

    def broadcast(self, shapes: Iterable[Shape]) -> Shape:
        """What shapes broadcast to; on the left side they do, on the right side that must be known."""
        given = [self.shape(shape) for shape in shapes]
        made = join(given)
        if len(made.segments) == 1 and isinstance(made.segments[0], Join):
            parts = made.segments[0].shapes
            if not self.is_fixed:
                self.joins.append(parts)
            elif not self._broadcast_together(parts):
                raise Unproven
        return self.shape(made)

    def _broadcast_together(self, parts: frozenset[Shape]) -> bool:
        known = [frozenset(self.shape(shape) for shape in joined) for joined in self.joins]
        inside: dict[Shape, set[Shape]] = {}
        for part, whole in self.within:
            inside.setdefault(self.shape(whole), {self.shape(whole)}).add(self.shape(part))
        known += [frozenset(shapes) for shapes in inside.values()]
        pairs = {frozenset({one, other}) for joined in known for one in joined for other in joined}
        # shapes of which each two broadcast all broadcast
        return all(frozenset({one, other}) in pairs for one in parts for other in parts if one != other)

    def contain(self, part: Shape, whole: Shape) -> None:
        """From now on `part` broadcasts to `whole`."""
        self.within.append((self.shape(part), self.shape(whole)))

    # --- equations ---

    def equal_dims(self, left: Dim, right: Dim) -> None:
        """Two extents are one. Raises Clash where they cannot be, Unproven where that is not known."""
        left, right = self.dim(left), self.dim(right)
        if left == right:
            return
        if add(left, right, -1).is_constant:
            raise Clash
        for one, other in ((left, right), (right, left)):
            atom = _name_of(one)
            if atom is not None and atom.name in self.free and all(atom != used for used, _ in other.terms):
                self.dims[atom.name] = other
                return
        if self.is_fixed:
            raise Unproven

    def equal_shapes(self, left: Shape, right: Shape) -> None:
        """Two shapes are one. Raises as `equal_dims`."""
        one, other = list(self.shape(left).segments), list(self.shape(right).segments)
        for end in (-1, 0):
            while one and other:
                if one[end] == other[end]:
                    pass
                elif isinstance(one[end], Dim) and isinstance(other[end], Dim):
                    self.equal_dims(one[end], other[end])  # type: ignore[arg-type]
                else:
                    break
                one.pop(end)
                other.pop(end)
        self._equal_rests(one, other)

    def _equal_rests(self, one: list[Segment], other: list[Segment]) -> None:
        if not one and not other:
            return
        for these, those in ((one, other), (other, one)):
            if len(these) == 1 and isinstance(these[0], Rest) and these[0].atom.name in self.free:
                if these[0] not in those:
                    self.shapes[these[0].atom.name] = Shape(tuple(those))
                return
        for these, those in ((one, other), (other, one)):
            fewest = sum(isinstance(segment, Dim) for segment in those)
            if all(isinstance(segment, Dim) for segment in these) and fewest > len(these):
                raise Clash
        if self.is_fixed:
            raise Unproven

    def last_axis(self, shape: Shape, first: bool = False) -> tuple[Shape, Dim]:
        """A shape without its last (or first) axis, and that axis. Raises as `equal_dims`."""
        segments = self.shape(shape).segments
        if not segments:
            raise Clash
        end, rest = (segments[0], segments[1:]) if first else (segments[-1], segments[:-1])
        if isinstance(end, Dim):
            return Shape(rest), end
        if isinstance(end, Rest) and end.atom.name in self.free:
            name = end.atom.shown
            run, axis = Rest(self.fresh(name)), dim(self.fresh(f"{name}[{0 if first else -1}]"))
            self.shapes[end.atom.name] = Shape((axis, run) if first else (run, axis))
            return self.last_axis(shape, first)
        whole = Shape((end,))
        self.known(("axes", whole, first))
        run = Rest(Atom("rest", (whole, first), f"rest of {end}"))
        axis = dim(Atom("axis", (whole, first), f"{'first' if first else 'last'} of {end}"))
        return Shape((run, *rest) if first else (*rest, run)), axis

    # --- what has no form of its own ---

    def known(self, fact: object) -> None:
        """On the left side the fact is learned; on the right side it must be known. Raises Unproven."""
        if self.supposed:
            self.doubtful = True
            return
        fact = self._resolved(fact)
        if not self.is_fixed:
            self.facts.add(fact)
        elif fact not in self.facts:
            raise Unproven

    def holds(self, fact: object) -> bool:
        """Whether a condition is known to hold."""
        fact = self._resolved(fact)
        return fact in self.facts or (not self.is_fixed and any(self._resolved(one) == fact for one in self.facts))

    # --- dtypes ---

    def new_dtype(self, allowed: frozenset[str]) -> str:
        """A dtype of its own."""
        self.made += 1
        name = f"T#{self.made}"
        self.allowed[name] = allowed
        self.free.add(name)
        return name

    def dtype(self, name: str) -> str:
        """The name that stands for all dtypes that are known to be this one."""
        while name in self.dtypes:
            name = self.dtypes[name]
        return name

    def narrow(self, name: str, allowed: frozenset[str]) -> None:
        """The dtype is one of some; a right side that takes fewer dtypes is made for those only.

        Raises Clash where it is none of them.
        """
        name = self.dtype(name)
        both = self.allowed[name] & allowed
        if not both:
            raise Clash
        self.allowed[name] = both

    def equal_dtypes(self, left: str, right: str) -> None:
        """Two dtypes are one. Raises as `equal_dims`."""
        left, right = self.dtype(left), self.dtype(right)
        if left == right:
            return
        both = self.allowed[left] & self.allowed[right]
        if not both:
            raise Clash
        if self.allowed[left] == self.allowed[right] and len(both) == 1:
            return
        if left not in self.free:
            left, right = right, left
        if left not in self.free or (self.is_fixed and right not in self.free and both != self.allowed[right]):
            raise Unproven
        self.dtypes[left] = right
        self.allowed[right] = both


def _without_contained(shapes: frozenset[Shape], within: list[tuple[Shape, Shape]]) -> frozenset[Shape] | None:
    """The shapes without those that broadcast to another one of them; None where there are none."""
    kept = shapes
    for part, whole in within:
        if part in kept and whole in kept and part != whole:
            kept -= {part}
    return None if len(kept) == len(shapes) else kept


def _name_of(value: Dim) -> Atom | None:
    """The name that an extent consists of."""
    if value.constant == 0 and len(value.terms) == 1 and value.terms[0][1] == 1 and not value.terms[0][0].arguments:
        return value.terms[0][0]
    return None
