"""Draws operand types and attributes at which a definition is tried.

A drawing is made at random from a fixed seed under the constraints of the signature: a name bound twice has one extent,
dtypes come from the declared classes, attributes take their defaults or values that the definition compares them with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from random import Random

from smartmem_rules.language import syntax as s
from smartmem_rules.language.by_identity import ByIdentity
from smartmem_rules.language.expressions import nodes
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.binding import DTYPE_CLASSES
from smartmem_rules.tensor.builtins import ConstantTensor, Unsupported, Value
from smartmem_rules.tensor.definitions.values import Scope, evaluate
from smartmem_rules.tensor.expr import TensorType
from smartmem_rules.tensor.instantiate import Definitions

EXTENTS = (2, 3, 4, 6)
WITHOUT_OPTIONALS = 1
"""The number of the drawing in which all optional operands are absent."""
RANKS = (2, 3, 1, 2, 4, 0)
PREFERRED_DTYPES = ("float32", "int64", "bool")

Operand = TensorType | None
"""The type of an operand, None for an absent one."""


@dataclass
class Drawing:
    """Random operands and attributes of one overload; the first drawings are the plain ones."""

    base: Definitions
    operator: s.Operator
    random: Random
    number: int
    extents: dict[str, Value] = field(default_factory=dict)
    dtypes: dict[str, str] = field(default_factory=dict)
    wanted: Sequence[str] = ()
    """Element types that are drawn where a signature admits them, before all others."""
    sizes: Sequence[int] = EXTENTS
    """From which extents are drawn."""
    eager: bool = False
    """Whether whole numbers that may be left out are drawn as those that may not."""

    @property
    def outputs(self) -> int:
        """How many outputs are asked for."""
        return 2 if any(output.index for output in self.operator.outputs) else 1

    def operands(self, known: Mapping[int, Operand], count: int | None = None) -> list[Operand]:
        """Types of the run-time operands; `known` gives some by position, `count` cuts the list.

        Raises:
            Unsupported: the known ones do not fit the signature.
        """
        formals = [item for item in self.operator.inputs if item.constant is None]
        if formals and formals[-1].variadic:
            members = max(count - len(formals) + 1 if count is not None else self.random.choice((2, 3, 2, 1)), 0)
            formals = [*formals[:-1], *[formals[-1]] * members]
        if count is not None:
            if count > len(formals):
                raise Unsupported(f"{self.operator.name} takes {len(formals)} operands")
            formals = formals[:count]
        chosen: list[Operand] = [None] * len(formals)
        for place, operand in known.items():
            if operand is not None:
                self._unify(formals[place], operand)
            chosen[place] = operand
        present = self.number != WITHOUT_OPTIONALS and (self.number == 0 or self.random.random() < 0.7)
        for place, formal in enumerate(formals):
            if place not in known and (not formal.optional or present or count is not None):
                chosen[place] = TensorType(self._dtype(formal), self._shape(formal))
        return chosen

    def attributes(self, given: Mapping[str, Value]) -> dict[str, Value]:
        """Attributes and compile-time operands; those that may be left out mostly are."""
        values = dict(given)
        for item in self.operator.inputs:
            if item.constant is not None and item.name not in values:
                required = item.default is None and not item.optional
                self._attribute(item.name, item.constant, required, values)
        for attribute in self.operator.attributes:
            if attribute.name not in values:
                self._attribute(attribute.name, attribute.kind, attribute.required, values)
        return values

    # --- shapes and dtypes ---

    def fitting(self, place: int, dtype: str) -> str:
        """A dtype that an operand may have, `dtype` if it may."""
        formals = [item for item in self.operator.inputs if item.constant is None]
        formal = formals[min(place, len(formals) - 1)].type if formals else None
        allowed = formal is None or dtype in allowed_dtypes(self.operator, formal.dtype)
        return dtype if allowed or formal is None else self._preferred(formal.dtype)

    def _unify(self, formal: s.Input, operand: TensorType) -> None:
        assert formal.type is not None
        name = formal.type.dtype
        if self.dtypes.setdefault(name, operand.dtype) != operand.dtype and name not in DTYPE_CLASSES:
            raise Unsupported("two dtypes")
        if operand.dtype not in allowed_dtypes(self.operator, name):
            raise Unsupported("dtype")
        if formal.variadic:
            return
        items = formal.type.shape
        splats = sum(isinstance(item, s.Splat) for item in items)
        width = len(operand.shape) - len(items) + splats
        if width < 0 or (not splats and width):
            raise Unsupported("rank")
        axis = 0
        for item in items:
            if isinstance(item, s.Splat):
                if isinstance(item.operand, s.Name):
                    self.extents.setdefault(item.operand.id, operand.shape[axis : axis + width])
                axis += width
            else:
                if isinstance(item, s.Name):
                    self.extents.setdefault(item.id, operand.shape[axis])
                axis += 1

    def _dtype(self, formal: s.Input) -> str:
        assert formal.type is not None
        name = formal.type.dtype
        if name in DTYPE_CLASSES and not any(variable.name == name for variable in self.operator.dtypes):
            return self._preferred(name)
        return self.dtypes.setdefault(name, self._preferred(name))

    def _preferred(self, name: str) -> str:
        allowed = allowed_dtypes(self.operator, name)
        return next((dtype for dtype in self.wanted if dtype in allowed), None) or _preferred(allowed)

    def _shape(self, formal: s.Input) -> tuple[int, ...]:
        assert formal.type is not None
        shape: list[int] = []
        for item in formal.type.shape:
            if isinstance(item, s.Splat):
                shape.extend(self._list(item.operand))
            elif isinstance(item, s.Name):
                shape.append(self._extent(item.id))
            else:
                value = evaluate(item, Scope(dict(self.extents), {}, self.base.functions))
                shape.append(int(value) if isinstance(value, int | float) else 1)
        return tuple(shape)

    def _extent(self, name: str) -> int:
        if name not in self.extents:
            bound = [v for v in self.extents.values() if isinstance(v, int)]
            reuse = bound and self.random.random() < 0.5
            self.extents[name] = self.random.choice(bound if reuse else self.sizes)
        value = self.extents[name]
        return value if isinstance(value, int) else 1

    def _list(self, pattern: s.Expression) -> tuple[int, ...]:
        if not isinstance(pattern, s.Name):
            return ()
        if pattern.id not in self.extents:
            self.extents[pattern.id] = self._fresh_list()
        value = self.extents[pattern.id]
        return tuple(v for v in value if isinstance(v, int)) if isinstance(value, tuple) else ()

    def _fresh_list(self) -> tuple[int, ...]:
        bound = [v for v in self.extents.values() if isinstance(v, tuple)]
        if bound and self.number and self.random.random() < 0.85:
            return self._variant(tuple(v for v in self.random.choice(bound) if isinstance(v, int)))
        if bound and not self.number:
            return tuple(v for v in bound[0] if isinstance(v, int))
        rank = 2 if not self.number else self.random.choice(RANKS)
        return tuple(self.random.choice(self.sizes) for _ in range(rank))

    def _variant(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that broadcasts with another one."""
        match self.random.randrange(8):
            case 0:
                return shape[len(shape) // 2 :]
            case 1:
                return tuple(1 if self.random.random() < 0.5 else extent for extent in shape)
            case 2:
                return shape[-1:]
            case 3:
                return ()
            case 4:
                return (self.random.choice(self.sizes), *shape)[:4]
            case _:
                return shape

    # --- attributes ---

    def _attribute(self, name: str, kind: str, required: bool, values: dict[str, Value]) -> None:
        if not required and (self.number < 2 or self.random.random() < 0.6):
            return
        if kind == "ints" and name in orders_of(self.operator) and self.random.random() < 0.7:
            values[name] = self.order()
            return
        required = required or (self.eager and kind == "int")
        compared = compared_values(self.operator).get(name, ())
        if compared and (not required or self.random.random() < 0.7):
            values[name] = self.random.choice(compared)
        elif required:
            values[name] = self._value(kind)

    def value_of(self, name: str) -> Value:
        """A value for an attribute or compile-time operand, whatever its default."""
        kinds = {item.name: item.constant for item in self.operator.inputs if item.constant is not None}
        kinds |= {attribute.name: attribute.kind for attribute in self.operator.attributes}
        return self._value(kinds.get(name, "int"))

    def _longest(self) -> tuple[Value, ...]:
        lists = [v for v in self.extents.values() if isinstance(v, tuple)]
        return max(lists, key=len, default=(2,))

    def order(self) -> tuple[int, ...]:
        """The axes of the operand of most axes in some order."""
        order = list(range(len(self._longest())))
        self.random.shuffle(order)
        return tuple(order)

    def _value(self, kind: str) -> Value:
        shape = self._longest()
        match kind:
            case "int":
                return self.random.choice((0, 1, 2, -1))
            case "float":
                return self.random.choice((1.0, 0.5, 2.0))
            case "string":
                return "float32"
            case "bool":
                return True
            case "tensor":
                return ConstantTensor((2,), (1, 0))
            case "floats":
                return (1.0,) * len(shape)
            case _:
                return self._integers(tuple(v for v in shape if isinstance(v, int)))

    def _integers(self, shape: tuple[int, ...]) -> Value:
        order = self.order()
        alike = [(number,) * len(shape) for number in (1, 2)]
        choices: list[tuple[int, ...]] = [order, (0,), (-1,), (1,), shape, (2, *shape), *alike]
        return self.random.choice(choices)


def allowed_dtypes(operator: s.Operator, name: str) -> frozenset[str]:
    """The dtypes that a dtype variable, class or word of an operator stands for."""
    return _allowed(operator.dtypes, name)


@lru_cache(maxsize=1024)
def _allowed(variables: tuple[s.DtypeVariable, ...], name: str) -> frozenset[str]:
    for variable in variables:
        if variable.name == name:
            return frozenset(d for word in variable.classes for d in DTYPE_CLASSES.get(word, (word,)))
    return frozenset(DTYPE_CLASSES.get(name, DTYPE_CLASSES["number"]))


@lru_cache(maxsize=1024)
def _preferred(allowed: frozenset[str]) -> str:
    return next((dtype for dtype in PREFERRED_DTYPES if dtype in allowed), min(allowed, default="float32"))


_COMPARED: dict[int, tuple[s.Operator, Mapping[str, Sequence[Value]]]] = {}
_MOST_COMPARED = 1024


_ORDERS: ByIdentity[s.Operator, frozenset[str]] = ByIdentity(1024)


def orders_of(operator: s.Operator) -> frozenset[str]:
    """The names that a definition takes for orders of axes."""
    return _ORDERS.get(operator, _orders)


def _orders(operator: s.Operator) -> frozenset[str]:
    return frozenset(
        node.arguments[1].id
        for node in nodes(operator)
        if isinstance(node, s.Call)
        and node.function in ("permute", "unpermute")
        and len(node.arguments) == 2
        and isinstance(node.arguments[1], s.Name)
    )


def compared_values(operator: s.Operator) -> Mapping[str, Sequence[Value]]:
    """For each name the literals that the definition compares it with."""
    # kept by identity: to hash a definition takes as long as to walk it
    known = _COMPARED.get(id(operator))
    if known is not None and known[0] is operator:
        return known[1]
    found: dict[str, list[Value]] = {}
    for node in nodes(operator):
        if isinstance(node, s.Binary) and node.operator in ("==", "!=", "<", "<=", ">", ">="):
            for name, other in ((node.left, node.right), (node.right, node.left)):
                if isinstance(name, s.Name) and isinstance(other, s.Number | s.Text):
                    found.setdefault(name.id, []).append(other.value)
    if len(_COMPARED) > _MOST_COMPARED:
        _COMPARED.clear()
    values = {name: tuple(dict.fromkeys(given)) for name, given in found.items()}
    _COMPARED[id(operator)] = operator, values
    return values
