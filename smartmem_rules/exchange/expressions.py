"""Index maps and kernels' expressions as JSON, and back; what is read is brought into the normal form again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from smartmem_rules.errors import SmartmemError
from smartmem_rules.tensor.atoms import Div, Gathered, Lookup, Mod, Var
from smartmem_rules.tensor.builtins import ConstantTensor, Value
from smartmem_rules.tensor.expr import (
    Apply,
    Compare,
    Condition,
    Const,
    Expr,
    FromIndex,
    Logic,
    Read,
    Reduce,
    Select,
    compare,
    logic,
    select,
    walk,
)
from smartmem_rules.tensor.index import Index, add, div, mod, scale, variable
from smartmem_rules.tensor.substitution import gathered, lookup
from smartmem_rules.tensor.views import IndexMap, axis_variables

Loops = Mapping[str, Var]


class ExchangeError(SmartmemError):
    """JSON that stands for no expression, index or value; the message says what."""


# --- values of attributes ---


def value_json(value: Value) -> Any:
    """An attribute's value."""
    match value:
        case ConstantTensor(shape=shape, values=values, dtype=dtype):
            return {"tensor": [list(shape), list(map(value_json, values)), dtype]}
        case tuple():
            return {"list": list(map(value_json, value))}
        case float() if not math.isfinite(value):
            return {"float": repr(value)}
        case bool() | int() | float() | str() | None:
            return value
        case _:
            raise TypeError(f"{value!r} is no value of an attribute")


def read_value(data: Any) -> Value:
    """The value again."""
    match data:
        case {"tensor": [shape, values, dtype]}:
            return ConstantTensor(tuple(shape), tuple(map(read_value, values)), dtype)  # type: ignore[arg-type]
        case {"list": items}:
            return tuple(map(read_value, items))
        case {"float": text}:
            return float(text)
        case bool() | int() | float() | str() | None:
            return data
        case _:
            raise ExchangeError(f"{data!r} is no value of an attribute")


# --- indices ---


def map_json(map_: IndexMap) -> Any:
    """An index map; `text` is for readers."""
    indices = [index_json(index) for index in map_.indices]
    return {"extents": list(map_.shape), "source": list(map_.source), "indices": indices}


def read_map(data: Any) -> IndexMap:
    """The map again."""
    variables = axis_variables(tuple(data["extents"]))
    loops = {v.name: v for v in variables}
    return IndexMap(variables, tuple(read_index(i, loops) for i in data["indices"]), tuple(data["source"]))


def index_json(index: Index) -> Any:
    """`[constant, [coefficient, atom], ...]`; an integer where there are no atoms."""
    return [index.constant, *([c, _atom_json(atom)] for atom, c in index.terms)] if index.terms else index.constant


def _atom_json(atom: Any) -> Any:
    match atom:
        case Var(name=name):
            return name
        case Div(value=value, divisor=divisor):
            return ["//", index_json(value), divisor]
        case Mod(value=value, divisor=divisor):
            return ["%", index_json(value), divisor]
        case Lookup(table=table, position=position):
            return ["table", list(table), index_json(position)]
        case Gathered(tensor=tensor, indices=indices, extent=extent, wrap=wrap):
            return ["at", tensor, list(map(index_json, indices)), extent, wrap]
    raise TypeError(f"{atom!r} is no part of an index")


def read_index(data: Any, loops: Loops) -> Index:
    """The index again, over loop variables by name."""
    if isinstance(data, int):
        return Index(data)
    constant, *terms = data
    index = Index(constant)
    for coefficient, atom in terms:
        index = add(index, scale(_read_atom(atom, loops), coefficient))
    return index


def _read_atom(data: Any, loops: Loops) -> Index:
    match data:
        case str():
            return variable(loops[data])
        case ["//", value, divisor]:
            return div(read_index(value, loops), divisor)
        case ["%", value, divisor]:
            return mod(read_index(value, loops), divisor)
        case ["table", table, position]:
            return lookup(tuple(table), read_index(position, loops))
        case ["at", tensor, indices, extent, wrap]:
            return gathered(tensor, tuple(read_index(i, loops) for i in indices), extent, wrap)
    raise ExchangeError(f"{data!r} is no part of an index")


# --- expressions ---


def expression_json(expr: Expr) -> Any:
    """An expression as nested lists, the kind first."""
    match expr:
        case Const(value=value, dtype=dtype):
            return ["const", value_json(value), dtype]
        case Read(tensor=tensor, indices=indices, dtype=dtype):
            return ["read", tensor, list(map(index_json, indices)), dtype]
        case Apply(function=function, arguments=arguments, dtype=dtype):
            return ["apply", function, list(map(expression_json, arguments)), dtype]
        case Select(condition=condition, then=then, otherwise=otherwise):
            return ["if", condition_json(condition), expression_json(then), expression_json(otherwise)]
        case FromIndex(index=index, dtype=dtype):
            return ["index", index_json(index), dtype]
        case Reduce(kind=kind, variables=variables, body=body, dtype=dtype):
            return ["reduce", kind, [v.name for v in variables], expression_json(body), dtype]


def condition_json(condition: Condition) -> Any:
    """A condition as nested lists."""
    match condition:
        case Compare(operator=operator, left=left, right=right):
            return [operator, index_json(left), index_json(right)]
        case Logic(operator=operator, operands=operands):
            return [operator, *map(condition_json, operands)]


def read_expression(data: Any, loops: Loops) -> Expr:
    """The expression again, over loop variables by name."""
    match data:
        case ["const", value, dtype]:
            return Const(read_value(value), dtype)  # type: ignore[arg-type]
        case ["read", tensor, indices, dtype]:
            return Read(tensor, tuple(read_index(i, loops) for i in indices), dtype)
        case ["apply", function, arguments, dtype]:
            return Apply(function, tuple(read_expression(a, loops) for a in arguments), dtype)
        case ["if", condition, then, otherwise]:
            chosen = read_expression(then, loops), read_expression(otherwise, loops)
            return select(read_condition(condition, loops), *chosen)
        case ["index", index, dtype]:
            return FromIndex(read_index(index, loops), dtype)
        case ["reduce", kind, variables, body, dtype]:
            made = Reduce(kind, tuple(loops[v] for v in variables), read_expression(body, loops), dtype)
            inner = [v for n in walk(made.body) if isinstance(n, Reduce) for v in n.variables]
            if not set(made.variables).isdisjoint(inner):
                raise ExchangeError(f"a reduction runs over {', '.join(variables)} inside of one that does")
            return made
    raise ExchangeError(f"{data!r} is no expression")


def read_condition(data: Any, loops: Loops) -> Condition | bool:
    """The condition again, decided where intervals suffice."""
    match data:
        case ["and" | "or" | "not" as operator, *operands]:
            return logic(operator, tuple(read_condition(one, loops) for one in operands))
        case ["<" | "<=" | "==" | "!=" as operator, left, right]:
            return compare(operator, read_index(left, loops), read_index(right, loops))
    raise ExchangeError(f"{data!r} is no condition")
