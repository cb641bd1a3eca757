"""Emits index arithmetic and conditions as OpenCL C text, and names what occurs in it."""

from __future__ import annotations

from collections.abc import Mapping

from smartmem_rules.emit.c.access import Access
from smartmem_rules.emit.c.writer import Writer
from smartmem_rules.tensor.atoms import UNKNOWN_EXTENT, Atom, Div, Gathered, Lookup, Mod, Var
from smartmem_rules.tensor.expr import Compare, Condition, Logic
from smartmem_rules.tensor.extent_factors import divisor_text
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, variable
from smartmem_rules.tensor.ranges import surely_at_most, surely_below


class Indices:
    """Emits one kernel's indices into a writer.

    Args:
        accesses: the stored tensors that the kernel reads.
    """

    def __init__(self, writer: Writer, accesses: Mapping[str, Access]) -> None:
        self.writer = writer
        self.accesses = accesses
        self.tables: dict[tuple[int, ...], str] = {}
        self.table_name = "table"
        self._names: dict[Var, str] = {}
        self._temporaries = 0

    def name(self, var: Var) -> str:
        """The C name of a loop variable, given in the order of first use so that equal kernels have equal text."""
        return self._names.setdefault(var, f"i{len(self._names)}")

    def bind_name(self, var: Var, text: str) -> None:
        """Write a loop variable by a name of the template."""
        self._names[var] = text

    def temporary(self) -> str:
        self._temporaries += 1
        return f"t{self._temporaries}"

    def index(self, index: Index) -> str:
        """An index as C text; its terms are in an order of their texts, so that equal kernels have equal text."""
        terms = [(not isinstance(atom, Var), self._atom(atom), coefficient) for atom, coefficient in index.terms]
        terms.sort(key=lambda term: (term[0], len(term[1]), term[1]))  # i9 before i10
        parts = [text if coefficient == 1 else f"{text} * {coefficient}" for _, text, coefficient in terms]
        if index.constant or not parts:
            parts.append(str(index.constant))
        return parts[0] if len(parts) == 1 and index.constant == 0 else "(" + " + ".join(parts) + ")"

    def _atom(self, atom: Atom) -> str:
        match atom:
            case Var():
                return self.name(atom)
            case Div(value=value, divisor=divisor):
                if not surely_at_most(0, value.interval[0]):
                    return f"smr_floordiv_i({self.index(value)}, {divisor_text(divisor)})"
                return f"({self.index(value)} / {divisor_text(divisor)})"
            case Mod(value=value, divisor=divisor):
                if not surely_at_most(0, value.interval[0]):
                    return f"smr_mod_i({self.index(value)}, {divisor_text(divisor)})"
                return f"({self.index(value)} % {divisor_text(divisor)})"
            case Lookup(table=table, position=position):
                if any(map(is_symbolic, table)):
                    return self._choice(table, self.index(position))
                name = self.tables.setdefault(table, f"{self.table_name}{len(self.tables)}")
                place = self.index(position)
                return (
                    f"{name}[{place if _surely_inside(position, len(table)) else f'smr_inside({place}, {len(table)})'}]"
                )
            case Gathered():
                element = f"(int){self.accesses[atom.tensor].read(self.inside(atom.tensor, atom.indices), self.index)}"
                free = atom.extent == UNKNOWN_EXTENT and not atom.wrap
                if free or self.accesses[atom.tensor].stored.holds_places(atom.extent):
                    return f"({element})"
                return f"{'smr_wrap' if atom.wrap else 'smr_inside'}({element}, {atom.extent})"

    @staticmethod
    def _choice(table: tuple[int, ...], position: str) -> str:
        """An element of a table whose values the kernel's dimensions decide."""
        *others, last = table
        tests = "".join(f"{position} == {place} ? {value} : " for place, value in enumerate(others))
        return f"({tests}{last})"

    def condition(self, condition: Condition) -> str:
        match condition:
            case Compare(operator=operator, left=left, right=right):
                return f"{self.index(left)} {operator} {self.index(right)}"
            case Logic(operator="not", operands=operands):
                return f"!({self.condition(operands[0])})"
            case Logic(operator=operator, operands=operands):
                return (" && " if operator == "and" else " || ").join(f"({self.condition(o)})" for o in operands)

    def inside(self, tensor: str, indices: tuple[Index, ...]) -> tuple[Index, ...]:
        """The indices, those held inside the tensor that depend on what an integer tensor holds."""
        return tuple(map(self._held, indices, self.accesses[tensor].stored.type.shape))

    def holds_lanes(self, tensor: str, indices: tuple[Index, ...], lane: Var) -> bool:
        """Whether an index that is held inside the tensor moves with a vector's lanes: then each is held alone."""
        shape = self.accesses[tensor].stored.type.shape
        return any(
            lane in i.variables and not _surely_inside(i, extent) for i, extent in zip(indices, shape, strict=True)
        )

    def _held(self, index: Index, extent: int) -> Index:
        if _surely_inside(index, extent):
            return index
        held = Var(self.temporary(), extent)
        self._names[held] = held.name
        self.writer.line(f"const int {held.name} = smr_inside({self.index(index)}, {extent});")
        return variable(held)


def _surely_inside(index: Index, extent: int) -> bool:
    low, high = index.interval
    return not index.gathered or (surely_at_most(0, low) and surely_below(high, extent))
