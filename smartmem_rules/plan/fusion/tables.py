"""Long index tables become constants: a kernel's text holds short ones only.

OpenCL promises 64 KiB of constant memory to all tables of a program together, and no device here has more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from smartmem_rules.plan.fusion.program import Definition, Program
from smartmem_rules.tensor.atoms import Div, Gathered, Lookup, Mod
from smartmem_rules.tensor.expr import Expr, TensorType, own_indices, rebuild, walk
from smartmem_rules.tensor.extents import is_symbolic
from smartmem_rules.tensor.index import Index, add
from smartmem_rules.tensor.substitution import gathered, lookup, map_elements

_NAME = "index_table_{}"
_TYPE = "int32"


def with_tables_in_memory(program: Program, longest: int) -> Program:
    """The program whose equations read index tables of more than `longest` elements from tensors.

    A table whose elements follow from the model's dimensions stays in the text, and so does one that no int32 holds.
    """
    tables = _Tables(program, longest)
    definitions = [tables.read_by(definition) for definition in program.definitions]
    if not tables.names:
        return program
    made = {name: (np.asarray(table) - min(table)).astype(_TYPE) for table, name in tables.names.items()}
    return replace(
        program,
        definitions=definitions,
        types=program.types | {name: TensorType(_TYPE, values.shape) for name, values in made.items()},
        constants=program.constants | made,
        packable=program.packable | made,
        tables={name: table for table, name in tables.names.items()},
    )


def with_tables_in_text(expr: Expr, tables: Mapping[str, tuple[int, ...]]) -> Expr:
    """The expression as it was before its tables went to memory."""

    def in_text(element: Lookup | Gathered) -> Index | None:
        match element:
            case Gathered(tensor=tensor, indices=(position,)) if tensor in tables:
                return add(lookup(tables[tensor], position), Index(-min(tables[tensor])))
        return None

    return rebuild(expr, lambda index: map_elements(index, in_text), lambda read: read)


class _Tables:
    """The long tables of a program, by name."""

    def __init__(self, program: Program, longest: int) -> None:
        self.names: dict[tuple[int, ...], str] = {}
        self._taken = {*program.types, *program.constants}
        self._longest = longest

    def read_by(self, definition: Definition) -> Definition:
        """The definition over tensors in the place of long tables."""
        if not any(self._has_long(index) for node in walk(definition.equation.body) for index in own_indices(node)):
            return definition
        body = rebuild(definition.equation.body, lambda index: map_elements(index, self._stored), lambda read: read)
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

    def _stored(self, element: Lookup | Gathered) -> Index | None:
        """What reads a table from memory; None where it stays in the text."""
        if isinstance(element, Gathered) or len(element.table) <= self._longest or any(map(is_symbolic, element.table)):
            return None
        least, most = min(element.table), max(element.table)
        if most - least > np.iinfo(_TYPE).max:
            return None
        name = self.names.get(element.table) or self.names.setdefault(element.table, self._free_name())
        return add(gathered(name, (element.position,), most - least + 1, wrap=False), Index(least))

    def _free_name(self) -> str:
        number = len(self.names)
        while (name := _NAME.format(number)) in self._taken:
            number += 1
        self._taken.add(name)
        return name
