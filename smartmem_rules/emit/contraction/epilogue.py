"""The epilogue of a contraction: the kernel's stores of the finished sums, four columns at a time."""

from __future__ import annotations

from smartmem_rules.emit.c.expressions import Value
from smartmem_rules.emit.c.kernel import Emission, lane_reader
from smartmem_rules.emit.c.primitives import compute_type
from smartmem_rules.plan.kernel.model import ACCUMULATOR, Store
from smartmem_rules.plan.schedule.grid import TILE_LANES
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Expr, Read, substitute_reads, substitute_variables
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, variable
from smartmem_rules.tensor.substitution import substitute

LANES = TILE_LANES


class VectorEpilogue:
    """Writes four neighbouring columns of one row.

    Args:
        extent: how many columns there are.
        lane: the variable that runs over the four columns.
        stores: what is written of the finished sums.
    """

    def __init__(self, emission: Emission, extent: int, lane: Var, stores: tuple[Store, ...]) -> None:
        self.emission = emission
        self.extent = extent
        self.lane = lane
        self.stores = stores

    def set_accumulator(self, name: str) -> None:
        """Let the epilogue read its sums from a float4 variable."""

        def read(node: Read, lane: Var | None) -> Value:
            if lane is not None:
                return Value(name, LANES)
            return Value(f"{name}.s{node.indices[0].constant}", 1)

        self.emission.expressions.internal[ACCUMULATOR] = read

    @property
    def in_two_steps(self) -> bool:
        """Whether values can be computed first, and stored later: each store takes all four columns at once."""
        images = any(self.emission.accesses[store.tensor].is_image for store in self.stores)
        return bool(self.stores) and not is_symbolic(self.extent) and self.extent % LANES == 0 and not images

    def declarations(self, turns: int) -> list[str]:
        """C text of the arrays that keep so many turns' values, one of each store."""
        types = [compute_type(store.value.dtype, LANES) for store in self.stores]
        return [f"{name} {_kept(number)}[{turns}];" for number, name in enumerate(types)]

    def keep(self, at: dict[Var, Index]) -> None:
        """Compute the columns of a block, and keep them in the arrays at the turn `e`."""
        expressions = self.emission.expressions
        for number, store in enumerate(self.stores):
            value = expressions.value(substitute_variables(self._bound(store).value, at), self.lane)
            vector = expressions.spread(value, store.value.dtype, LANES)
            self.emission.writer.line(f"{_kept(number)}[e] = {vector};")

    def store(self, at: dict[Var, Index]) -> None:
        """Write the columns of a block that the arrays keep of the turn `e`."""
        for number, store in enumerate(self.stores):
            name = _kept(number)
            self.emission.expressions.internal[name] = lane_reader(Value(f"{name}[e]", LANES))
            indices = tuple(substitute(i, at) for i in store.indices)
            kept = Read(name, (variable(self.lane),), store.value.dtype)
            self.emission.store(Store(store.tensor, indices, kept, store.local), {}, self.lane)

    def write(self, at: dict[Var, Index], block: Var) -> None:
        """Write the columns of a block: four, or what is left of them in the last one."""
        expressions = self.emission.expressions
        whole, rest = divmod(self.extent, LANES)
        name = expressions.name(block)
        if whole:
            with expressions.scope(f"if ({name} < {whole})" if rest else ""):
                for store in self.stores:
                    self._vector(store, at)
        if rest:
            with expressions.scope(f"if ({name} == {whole})" if whole else ""):
                for store in self.stores:
                    self._part(store, at, rest)

    def _bound(self, store: Store) -> Store:
        def read(node: Read) -> Expr:
            return Read(ACCUMULATOR, (variable(self.lane),), node.dtype) if node.tensor == ACCUMULATOR else node

        return Store(store.tensor, store.indices, substitute_reads(store.value, read), store.local)

    def _vector(self, store: Store, at: dict[Var, Index]) -> None:
        access = self.emission.accesses[store.tensor]
        bound = self._bound(store)
        indices = tuple(substitute(i, at) for i in store.indices)
        if access.is_image and not access.contiguous(indices, self.lane):
            for place in range(LANES):
                self._single(bound, at, place)
        else:
            self.emission.store(bound, at, self.lane)

    def _single(self, bound: Store, at: dict[Var, Index], place: int) -> None:
        """One element, in an image in a texel of its own."""
        here = {v: substitute(i, {self.lane: Index(place)}) for v, i in at.items()}
        value = substitute_variables(substitute_variables(bound.value, at), {self.lane: Index(place)})
        text = self.emission.expressions.value(value).text
        access = self.emission.accesses[bound.tensor]
        if access.is_image:
            self.emission.texel(bound, here, f"(float4)({text}, 0.0f, 0.0f, 0.0f)")
            return
        indices = tuple(substitute(i, here) for i in bound.indices)
        self.emission.writer.line(access.write(indices, text, self.emission.expressions.index))

    def _part(self, store: Store, at: dict[Var, Index], rest: int) -> None:
        access = self.emission.accesses[store.tensor]
        bound = self._bound(store)
        indices = tuple(substitute(i, at) for i in store.indices)
        expressions = self.emission.expressions
        if is_symbolic(rest):
            for place in range(LANES - 1):
                with expressions.scope(f"if ({place} < {rest})"):
                    self._single(bound, at, place)
            return
        values = [
            expressions.value(
                substitute_variables(substitute_variables(bound.value, at), {self.lane: Index(place)})
            ).text
            for place in range(rest)
        ]
        if access.is_image and access.contiguous(indices, self.lane):
            vector = f"(float4)({', '.join(values + ['0.0f'] * (LANES - rest))})"
            here = {v: substitute(i, {self.lane: Index(0)}) for v, i in at.items()}
            self.emission.texel(bound, here, vector)
            return
        for place in range(rest):
            here = {v: substitute(i, {self.lane: Index(place)}) for v, i in at.items()}
            if access.is_image:
                self.emission.texel(bound, here, f"(float4)({values[place]}, 0.0f, 0.0f, 0.0f)")
            else:
                at_lane = tuple(substitute(i, {self.lane: Index(place)}) for i in indices)
                self.emission.writer.line(access.write(at_lane, values[place], expressions.index))


def _kept(number: int) -> str:
    return f"kept{number}"
