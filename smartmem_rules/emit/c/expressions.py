"""Emits tensor expressions as OpenCL C statements, scalar or over the lanes of a vector.

In lane mode one loop variable has been replaced by `base + lane`, where the lane runs over the vector's width.
An expression that does not depend on the lane stays scalar; one whose elements lie side by side becomes a vector
load; one that has no vector form is computed lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice

from smartmem_rules.emit.c.access import Access
from smartmem_rules.emit.c.boundary_split import interior
from smartmem_rules.emit.c.loops import Loops
from smartmem_rules.emit.c.partial_sums import LONGEST, Accumulators, TermLoop, in_partial_sums
from smartmem_rules.emit.c.primitives import (
    apply,
    combine,
    compute_type,
    has_vector_form,
    has_vectors,
    identity,
    is_defined,
    is_float,
    literal,
    narrowed,
)
from smartmem_rules.emit.c.team import in_one_loop, shared_loop
from smartmem_rules.emit.c.writer import Writer
from smartmem_rules.language.blocks.device import TextChoices
from smartmem_rules.plan.kernel.addressing import INTEGER_VECTORS, VECTORS, is_contiguous
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import (
    Apply,
    Const,
    Expr,
    FromIndex,
    Read,
    Reduce,
    Select,
    condition_indices,
    free_variables,
    substitute_variables,
    walk,
)
from smartmem_rules.tensor.index import Index, add, scale, variable
from smartmem_rules.tensor.ranges import largest, several, surely_at_most, surely_below


@dataclass(frozen=True)
class Value:
    """A rendered expression: C text and how many lanes it has."""

    text: str
    width: int


@dataclass(frozen=True)
class Terms:
    """What a reduction takes: its body, for one element or for a vector of `width` along a lane."""

    of: Reduce
    body: Expr
    lane: Var | None
    width: int


Internal = Callable[[Read, Var | None], Value]
"""Renders the read of a stage or of the accumulator."""


class Expressions(Loops):
    """Emits one kernel's expressions into a writer.

    Args:
        accesses: the stored tensors that the kernel reads.
        width: lanes of the device's vectors.
        text: when it pays to write loops out.
    """

    def __init__(self, writer: Writer, accesses: Mapping[str, Access], width: int, text: TextChoices) -> None:
        super().__init__(writer, accesses, text)
        self.width = width
        self.internal: dict[str, Internal] = {}
        self.splits_borders = False
        self.loads_halves_where = False
        self.vectors_of_integers = False
        self._memo: list[dict[tuple[Expr, Var | None], Value]] = [{}]

    # --- blocks ---

    @contextmanager
    def scope(self, head: str) -> Iterator[None]:
        """A C block; what is computed inside is not known after it."""
        self._memo.append({})
        with super().scope(head):
            yield
        self._memo.pop()

    # --- values ---

    def value(self, expr: Expr, lane: Var | None = None) -> Value:
        """Emit what the expression needs and give its text."""
        if lane is not None and lane not in free_variables(expr):
            lane = None
        if isinstance(expr, Const):
            return Value(literal(expr.value, expr.dtype), 1)
        key = (expr, lane)
        for memo in reversed(self._memo):
            if key in memo:
                return memo[key]
        value = self._emit(expr, lane)
        self._memo[-1][key] = value
        return value

    def _emit(self, expr: Expr, lane: Var | None) -> Value:
        if lane is not None and not self._has_vector_form(expr, lane):
            return self._lane_by_lane(expr, lane)
        match expr:
            case Read():
                return self._read(expr, lane)
            case FromIndex(index=index, dtype=dtype):
                return self._bind(f"({compute_type(dtype)}){self.index(index)}", dtype, 1)
            case Apply():
                return self._apply(expr, lane)
            case Select():
                return self._select(expr, lane)
            case Reduce():
                return self._reduce(expr, lane)
            case _:
                raise TypeError(type(expr).__name__)

    def _bind(self, text: str, dtype: str, width: int) -> Value:
        name = self.temporary()
        self.writer.line(f"const {compute_type(dtype, width)} {name} = {text};")
        return Value(name, width)

    def _has_vector_form(self, expr: Expr, lane: Var) -> bool:
        """Whether this node (not what is below it) can be computed on a vector."""
        if not self.has_vectors(expr.dtype):
            return False
        match expr:
            case Read(tensor=tensor, indices=indices):
                if tensor in self.internal:
                    return True
                return self.accesses[tensor].contiguous(indices, lane) and not self.holds_lanes(tensor, indices, lane)
            case Apply(function=function, arguments=arguments):
                if is_float(expr.dtype) and not is_defined(function, lane.extent):
                    return False
                if self.vectors_of_integers:
                    return has_vector_form(function, expr.dtype, [a.dtype for a in arguments])
                return function not in ("select", "mod", "fmod", "cast") and all(is_float(a.dtype) for a in arguments)
            case Select(condition=condition):
                return not any(lane in i.variables for i in condition_indices(condition))
            case Reduce(kind=kind):
                return kind in ("sum", "prod") or (kind in ("max", "min") and is_defined(kind, lane.extent))
            case _:
                return False

    def has_vectors(self, dtype: str) -> bool:
        """Whether values of the type are computed several at a time."""
        return has_vectors(dtype) if self.vectors_of_integers else is_float(dtype)

    def _lane_by_lane(self, expr: Expr, lane: Var) -> Value:
        if self._is_long(expr):
            return self._lanes_in_a_loop(expr, lane)
        elements = [self.value(substitute_variables(expr, {lane: Index(place)})).text for place in range(lane.extent)]
        vector = compute_type(expr.dtype, lane.extent)
        return self._bind(f"({vector})({', '.join(elements)})", expr.dtype, lane.extent)

    def _is_long(self, expr: Expr) -> bool:
        """Whether compilers take long over one copy of the expression for each lane."""
        if sum(1 for _ in islice(walk(expr), self.text.unroll_lanes + 1)) <= self.text.unroll_lanes:
            return False
        # a team's members may meet in a sum, and what the kernel keeps may lie in a vector, whose lanes have names
        kept = (isinstance(one, Read) and one.tensor in self.internal for one in walk(expr))
        return not any(kept) and not any(isinstance(one, Reduce) for one in walk(expr))

    def _lanes_in_a_loop(self, expr: Expr, lane: Var) -> Value:
        """One copy of the expression, in a loop that fills an array of the lanes' elements."""
        elements, turn = self.temporary(), Var(self.temporary(), lane.extent)
        self.writer.line(f"{compute_type(expr.dtype)} {elements}[{lane.extent}];")
        self.bind_name(turn, turn.name)
        with self.loop(turn):
            value = self.value(substitute_variables(expr, {lane: variable(turn)}))
            self.writer.line(f"{elements}[{turn.name}] = {value.text};")
        texts = [f"{elements}[{place}]" for place in range(lane.extent)]
        return self._bind(f"({compute_type(expr.dtype, lane.extent)})({', '.join(texts)})", expr.dtype, lane.extent)

    def _read(self, expr: Read, lane: Var | None) -> Value:
        internal = self.internal.get(expr.tensor)
        if internal is not None:
            return internal(expr, lane)
        access = self.accesses[expr.tensor]
        indices = self.inside(expr.tensor, expr.indices)
        if lane is None:
            return self._bind(access.read(indices, self.index), expr.dtype, 1)
        return self._bind(access.read_vector(indices, lane, self.index), expr.dtype, lane.extent)

    def _apply(self, expr: Apply, lane: Var | None) -> Value:
        values = [self.value(a, lane) for a in expr.arguments]
        width = max(v.width for v in values)
        texts = [v.text for v in values]
        if width > 1:
            texts = [self.spread(v, expr.dtype, width) for v in values]
        text = narrowed(apply(expr.function, texts, expr.dtype, expr.arguments[0].dtype, width), expr.dtype, width)
        return self._bind(text, expr.dtype, width)

    def spread(self, value: Value, dtype: str, width: int) -> str:
        """The value as a vector of the width."""
        if value.width == width:
            return value.text
        return f"({compute_type(dtype, width)})({value.text})"

    def _select(self, expr: Select, lane: Var | None) -> Value:
        width = 1 if lane is None else lane.extent
        halves = self._halves_where(expr, lane)
        if halves is not None:
            return self._bind(halves, expr.dtype, width)
        name = self.temporary()
        self.writer.line(f"{compute_type(expr.dtype, width)} {name};")
        for head, side in ((f"if ({self.condition(expr.condition)})", expr.then), ("else", expr.otherwise)):
            with self.without_team(), self.scope(head):
                value = self.value(side, lane)
                self.writer.line(f"{name} = {self.spread(value, expr.dtype, width) if width > 1 else value.text};")
        return Value(name, width)

    def _halves_where(self, expr: Select, lane: Var | None) -> str | None:
        """A vector of halves or zeros, loaded where the condition holds and converted in any case.

        Compilers make a predicated load of a branch that only loads, and then have many under way; one that converts
        as well stays a branch.
        """
        read, nothing = expr.then, expr.otherwise
        if lane is None or not self.loads_halves_where or not (isinstance(nothing, Const) and nothing.value == 0):
            return None
        if not isinstance(read, Read) or read.tensor in self.internal or any(i.gathered for i in read.indices):
            return None
        place = self.accesses[read.tensor].place_of_halves(read.indices, lane, self.index)
        if place is None:
            return None
        kind = self.accesses[read.tensor].converted
        return f"smr_load_{kind}4_where({self.condition(expr.condition)}, {place})"

    def border_and_interior(self, expr: Expr, inner: tuple[Var, ...]) -> Iterator[Expr]:
        """The expression in a C block for windows inside what they read, then in one for those at a border.

        Where there is no such difference, the expression alone. What the caller writes between two turns of the
        iteration stands inside the block.
        """
        found = interior(expr, inner, self.text.border_tests) if self.splits_borders else None
        if found is None:
            yield expr
            return
        self.splits_borders, self.is_interior = False, True
        with self.scope(f"if ({self.condition(found.test)})"):
            yield found.body
        self.is_interior = False
        with self.scope("else"):
            yield expr
        self.splits_borders = True

    # --- reductions ---

    def _reduce(self, expr: Reduce, lane: Var | None) -> Value:
        if lane is not None or (self.team is not None and compute_type(expr.dtype) != "float"):
            with self.without_team():
                return self._plain_reduce(expr, lane)
        if self.team is not None and self.team.joins_loops:
            expr = in_one_loop(expr)
        along = self._contiguous_variable(expr)
        return self._plain_reduce(expr, None) if along is None else self._vector_reduce(expr, along)

    def _accumulator(self, expr: Reduce, width: int) -> Accumulators:
        vector, start = compute_type(expr.dtype, width), identity(expr.kind, expr.dtype)
        return self.declared(Accumulators(("",), vector, f"({vector})({start})" if width > 1 else start))

    def _plain_reduce(self, expr: Reduce, lane: Var | None) -> Value:
        width = 1 if lane is None else lane.extent
        sums = self._accumulator(expr, width)
        for body in self.border_and_interior(expr.body, expr.variables if lane is None else (*expr.variables, lane)):
            self._loops(expr.variables, Terms(expr, body, lane, width), sums)
        return Value(self._of_team(expr, sums.names[0]), width)

    def _loops(
        self, variables: tuple[Var, ...], terms: Terms, sums: Accumulators, written_out: Var | None = None
    ) -> None:
        """Add all terms to an accumulator, those of long sums by way of partial sums."""
        team, shared = self.team, None
        if team is not None and variables:
            shared = variables[shared_loop([largest(v.extent) for v in variables], team.size)]
        loops = [
            TermLoop(
                variable=v,
                written_out=v is written_out or (self.unrolls and surely_at_most(v.extent, self.text.unroll)),
                team=team if v is shared else None,
            )
            for v in variables
        ]
        if terms.of.kind == "sum" and is_float(terms.of.dtype):
            loops = in_partial_sums(loops, LONGEST)
        self.in_step, before = shared is not None or self.in_step, self.in_step
        with self.without_team():
            self.sum_loops(loops, sums, lambda to: self._step(terms, to.names[0]))
        self.in_step = before

    def _of_team(self, expr: Reduce, name: str) -> str:
        """The members' partial results combined, known to all of them."""
        return name if self.team is None else self.team.combined(self.writer, expr.kind, name, expr.dtype)

    def _step(self, terms: Terms, name: str) -> None:
        expr, body, lane, width = terms.of, terms.body, terms.lane, terms.width
        if expr.kind == "sum" and expr.dtype == "float32" and isinstance(body, Apply) and body.function == "mul":
            # in one expression, which OpenCL lets the compiler contract
            factors = [self.value(a, lane) for a in body.arguments]
            texts = [self.spread(f, expr.dtype, width) if width > 1 else f.text for f in factors]
            self.writer.line(f"{name} += {' * '.join(texts)};")
            return
        value = self.value(body, lane)
        text = self.spread(value, expr.dtype, width) if width > 1 else value.text
        self.writer.line(f"{name} = {narrowed(combine(expr.kind, name, text, expr.dtype, width), expr.dtype, width)};")

    def _contiguous_variable(self, expr: Reduce) -> Var | None:
        """The reduction variable along which the elements lie side by side, where a vector of them can be taken."""
        if not is_float(expr.dtype) or expr.kind not in ("sum", "max", "min", "prod"):
            return None
        for var in reversed(expr.variables):
            if not surely_below(var.extent, self.width) and self.is_contiguous(expr.body, var):
                return var
        return None

    def is_contiguous(self, expr: Expr, var: Var) -> bool:
        """Whether some read advances by one element with the variable and none is scattered by it."""
        kinds = (*VECTORS, *INTEGER_VECTORS) if self.vectors_of_integers else VECTORS
        return is_contiguous(expr, var, self.width, lambda name: self.accesses[name].stored, self.internal, kinds)

    def _vector_reduce(self, expr: Reduce, along: Var) -> Value:
        """Partial results in the lanes, combined at the end; what fills no vector is taken one by one."""
        lane = Var("lane", self.width)
        whole, rest = divmod(along.extent, self.width)
        block = Var(f"{along.name}_block", whole)
        vector = self._accumulator(expr, self.width)
        others = tuple(v for v in expr.variables if v is not along)
        moved = substitute_variables(expr.body, {along: add(scale(whole_index(block), self.width), variable(lane))})
        short = block if self.writes_out(block) else None
        self._loops((*others, block), Terms(expr, moved, lane, self.width), vector, short)
        total = self._horizontal(expr, vector.names[0])
        scalar = Accumulators((total,), compute_type(expr.dtype), identity(expr.kind, expr.dtype))
        if rest:
            tail = Var(f"{along.name}_tail", rest)
            body = substitute_variables(expr.body, {along: add(whole_index(tail), Index(whole * self.width))})
            self._loops((*others, tail), Terms(expr, body, None, 1), scalar)
        return Value(self._of_team(expr, total), 1)

    def _horizontal(self, expr: Reduce, vector: str) -> str:
        name = self.temporary()
        lanes = [f"{vector}.s{i}" for i in range(self.width)]
        while len(lanes) > 1:
            half = len(lanes) // 2
            lanes = [f"({combine(expr.kind, lanes[i], lanes[i + half], expr.dtype, 1)})" for i in range(half)]
        self.writer.line(f"{compute_type(expr.dtype)} {name} = {lanes[0]};")
        return name


def whole_index(var: Var) -> Index:
    """The variable as an index even where its extent is 1: its loop is still written."""
    return Index(0, ((var, 1),)) if several(var.extent) else Index(0)
