"""Long index tables become constants: a kernel's text holds short ones only.

OpenCL promises 64 KiB of constant memory to all tables of a program together, and no device here has more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from smartmem_rules.graph.described import some
from smartmem_rules.plan.fusion.equations.program import Definition, Program, StoredTable
from smartmem_rules.tensor.atoms import Div, Gathered, Lookup, Mod, Var
from smartmem_rules.tensor.expr import (
    Apply,
    Expr,
    FromIndex,
    Read,
    Reduce,
    Select,
    TensorType,
    own_indices,
    rebuild,
    walk,
)
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, add, variable
from smartmem_rules.tensor.substitution import gathered, map_elements

_NAME = "index_table_{}"
_TYPE = "int32"
_WHOLE = {"float32": 1 << 24, "float64": 1 << 53}
"""Up to which number each whole one is a number of the type."""


def with_tables_in_memory(program: Program, longest: int) -> Program:
    """The program whose equations read index tables of more than `longest` elements from tensors.

    A table whose elements are no indices but numbers, as the weights of a `Resize`, becomes a tensor of such numbers. A
    table whose elements follow from the model's dimensions stays in the text, and so does one that no int32 holds.
    """
    tables = _Tables(program, longest)
    definitions = [tables.read_by(definition) for definition in program.definitions]
    if not tables.stored:
        return program
    made = {one.name: one.values for one in tables.stored.values()}
    return replace(
        program,
        definitions=definitions,
        types=program.types | {one.name: TensorType(one.dtype, one.shape) for one in tables.stored.values()},
        constants=some(program.constants).with_more(made),
        packable=some(program.packable).with_more(made),
        tables={one.name: one for one in tables.stored.values()},
    )


def with_tables_in_text(expr: Expr, tables: Mapping[str, StoredTable]) -> Expr:
    """The expression as it was before its tables went to memory."""

    def in_text(element: Lookup | Gathered) -> Index | None:
        match element:
            case Gathered(tensor=tensor, indices=indices) if tensor in tables:
                return add(tables[tensor].at(indices), Index(-tables[tensor].least))
        return None

    def number(read: Read) -> Expr:
        one = tables.get(read.tensor)
        return read if one is None else FromIndex(one.at(read.indices), read.dtype)

    return rebuild(expr, lambda index: map_elements(index, in_text), number)


class _Tables:
    """The long tables of a program, by their elements, shape and type."""

    def __init__(self, program: Program, longest: int) -> None:
        self.stored: dict[tuple[tuple[int, ...], tuple[int, ...], str], StoredTable] = {}
        self._taken = {*program.types, *program.constants}
        self._longest = longest

    def read_by(self, definition: Definition) -> Definition:
        """The definition over tensors in the place of long tables."""
        if not any(self._has_long(index) for node in walk(definition.equation.body) for index in own_indices(node)):
            return definition
        body = _with_numbers(definition.equation.body, self._number)
        body = rebuild(body, lambda index: map_elements(index, self._index), lambda read: read)
        return replace(definition, equation=replace(definition.equation, body=body))

    def _has_long(self, index: Index) -> bool:
        for atom, _ in index.terms:
            match atom:
                case Lookup(table=table, position=position):
                    if len(table) > self._longest or self._has_long(position):
                        return True
                case Gathered(indices=indices):
                    if any(map(self._has_long, indices)):
                        return True
                case Div(value=value) | Mod(value=value):
                    if self._has_long(value):
                        return True
        return False

    def _number(self, node: FromIndex) -> Expr:
        """A number that is an element of a table, as a read of a tensor of numbers."""
        match node.index:
            case Index(constant=0, terms=((Lookup(table=table, position=position), 1),)):
                if self._stays(table) or max(map(abs, table)) > _WHOLE.get(node.dtype, 0):
                    return node
                indices, shape = _digits(position, len(table))
                return Read(self._table(table, shape, 0, node.dtype).name, indices, node.dtype)
        return node

    def _index(self, element: Lookup | Gathered) -> Index | None:
        """What reads a table from memory; None where it stays in the text."""
        if isinstance(element, Gathered) or self._stays(element.table):
            return None
        least, most = min(element.table), max(element.table)
        if most - least > np.iinfo(_TYPE).max:
            return None
        one = self._table(element.table, (len(element.table),), least, _TYPE)
        return add(gathered(one.name, (element.position,), most - least + 1, wrap=False), Index(least))

    def _stays(self, table: tuple[int, ...]) -> bool:
        return len(table) <= self._longest or any(map(is_symbolic, table))

    def _table(self, table: tuple[int, ...], shape: tuple[int, ...], least: int, dtype: str) -> StoredTable:
        key = (table, shape, dtype)
        found = self.stored.get(key)
        if found is None:
            found = StoredTable(name=self._free_name(), table=table, shape=shape, least=least, dtype=dtype)
            self.stored[key] = found
        return found

    def _free_name(self) -> str:
        number = len(self.stored)
        while (name := _NAME.format(number)) in self._taken:
            number += 1
        self._taken.add(name)
        return name


def _digits(position: Index, length: int) -> tuple[tuple[Index, ...], tuple[int, ...]]:
    """A place in a table as places along axes, one for each loop variable, and their extents.

    With one axis for each variable the choice of layouts can bring the elements of a vector's lanes together.
    """
    terms = sorted(position.terms, key=lambda term: -term[1])
    step = length
    for atom, coefficient in terms:
        if not isinstance(atom, Var) or is_symbolic(atom.extent) or coefficient * atom.extent != step:
            return (position,), (length,)
        step = coefficient
    if position.constant or step != 1:
        return (position,), (length,)
    variables = [atom for atom, _ in terms if isinstance(atom, Var)]
    return tuple(map(variable, variables)), tuple(v.extent for v in variables)


def _with_numbers(expr: Expr, number: Callable[[FromIndex], Expr]) -> Expr:
    """The expression with every number that is an index replaced by what the function gives for it."""
    match expr:
        case FromIndex():
            return number(expr)
        case Apply(arguments=arguments):
            return replace(expr, arguments=tuple(_with_numbers(a, number) for a in arguments))
        case Select(then=then, otherwise=otherwise):
            return replace(expr, then=_with_numbers(then, number), otherwise=_with_numbers(otherwise, number))
        case Reduce(body=body):
            return replace(expr, body=_with_numbers(body, number))
        case _:
            return expr
