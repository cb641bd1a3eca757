"""Binds the formal operands and attributes of an operator to actual ones: element types, extents, values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.by_identity import ByIdentity
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import FUNCTIONS, Unsupported, Value, as_list
from smartmem_rules.tensor.definitions.values import Scope, TensorList, TensorName, evaluate
from smartmem_rules.tensor.expr import ALL_DTYPES, DTYPES, NARROW, TensorType
from smartmem_rules.tensor.ranges import agree

FLOATS = ("float32", "float16", "float64", "bfloat16")
INTEGERS = tuple(d for d in DTYPES if d.startswith(("int", "uint")))
DTYPE_CLASSES: dict[str, tuple[str, ...]] = {
    "float": FLOATS,
    "int": INTEGERS,
    "number": FLOATS + INTEGERS,
    "bool": ("bool",),
    "any": DTYPES,
    "narrow": NARROW,
    **{d: (d,) for d in ALL_DTYPES if d != "bool"},
}


def operand_name(position: int) -> str:
    return f"${position}"


def output_name(position: int) -> str:
    return f"%{position}"


def bind(
    operator: ast.Operator, operands: Sequence[TensorType | None], attributes: Mapping[str, Value], scope: Scope
) -> Mapping[str, str]:
    """Enter the operands, extents and attributes into a scope.

    Returns:
        What the operator's dtype variables are.

    Raises:
        Unsupported: the operator does not take these operands or attributes.
    """
    binding = _Binding(operator, operands, attributes, scope)
    binding.bind_operands()
    binding.bind_attributes()
    return binding.dtypes


def bind_operands(operator: ast.Operator, operands: Sequence[TensorType | None], scope: Scope) -> None:
    """Enter the operands and extents alone. Raises Unsupported where no attributes make the operator take them."""
    _Binding(operator, operands, {}, scope).bind_operands()


@dataclass(frozen=True)
class Declared:
    """What a signature says, in the form in which it is asked for each instance.

    Attributes:
        formals: the operands at run time.
        dtypes: the element types that each dtype variable may be.
        attributes: the names of attributes and compile-time operands.
    """

    formals: tuple[ast.Input, ...]
    dtypes: Mapping[str, tuple[str, ...]]
    attributes: frozenset[str]


def declared(operator: ast.Operator) -> Declared:
    """What an operator's signature says."""
    return _DECLARED.get(operator, _read)


def _read(operator: ast.Operator) -> Declared:
    constant = [i.name for i in operator.inputs if i.constant is not None]
    return Declared(
        tuple(i for i in operator.inputs if i.constant is None),
        {v.name: tuple(d for c in v.classes for d in DTYPE_CLASSES[c]) for v in operator.dtypes},
        frozenset([*(a.name for a in operator.attributes), *constant]),
    )


_DECLARED: ByIdentity[ast.Operator, Declared] = ByIdentity(1 << 12)


class _Binding:
    def __init__(
        self,
        operator: ast.Operator,
        operands: Sequence[TensorType | None],
        attributes: Mapping[str, Value],
        scope: Scope,
    ) -> None:
        self.operator = operator
        self.operands = operands
        self.attributes = attributes
        self.scope = scope
        self.declared = declared(operator)
        self.dtypes: dict[str, str] = {}

    def bind_operands(self) -> None:
        formals = self.declared.formals
        position = 0
        for formal in formals:
            if formal.variadic:
                members = []
                for place in range(position, len(self.operands)):
                    actual = self.operands[place]
                    if actual is None:
                        raise Unsupported(f"operand {place} of {self.operator.name} is absent")
                    self._bind(formal, actual)
                    members.append(TensorName(operand_name(place), actual))
                self.scope.tensors[formal.name] = TensorList(tuple(members))
                position = len(self.operands)
                continue
            operand = self.operands[position] if position < len(self.operands) else None
            if operand is None:
                if not formal.optional:
                    raise Unsupported(f"{self.operator.name} needs the operand {formal.name} at run time")
                self.scope.tensors[formal.name] = None
            else:
                self._bind(formal, operand)
                self.scope.tensors[formal.name] = TensorName(operand_name(position), operand)
            position += 1
        for formal in (formal for formal in formals if self.scope.tensors.get(formal.name) is None):
            self._variadic_shape(formal, ())
        if any(o is not None for o in self.operands[position:]):
            raise Unsupported(f"{self.operator.name} takes {len(formals)} run-time operands, not {len(self.operands)}")

    def _bind(self, formal: ast.Input, actual: TensorType) -> None:
        assert formal.type is not None
        self._bind_dtype(formal.type.dtype, actual.dtype, formal.name)
        if not formal.variadic:
            self._bind_shape(formal, actual.shape)
        else:
            self._variadic_shape(formal, actual.shape)

    def _variadic_shape(self, formal: ast.Input, shape: tuple[int, ...]) -> None:
        assert formal.type is not None
        for item in formal.type.shape:
            if isinstance(item, ast.Splat) and isinstance(item.operand, ast.Name):
                self.scope.values.setdefault(item.operand.id, shape)

    def _bind_dtype(self, name: str, actual: str, operand: str) -> None:
        allowed = self.declared.dtypes.get(name)
        if allowed is not None or name not in DTYPE_CLASSES:
            bound = self.dtypes.setdefault(name, actual)
            if bound != actual:
                raise Unsupported(f"operand {operand} of {self.operator.name} is {actual}, another one {bound}")
        if allowed is None:
            allowed = DTYPE_CLASSES.get(name, DTYPE_CLASSES["number"])
        if actual not in allowed:
            raise Unsupported(f"operand {operand} of {self.operator.name} is {actual}")

    def _bind_shape(self, formal: ast.Input, shape: tuple[int, ...]) -> None:
        assert formal.type is not None
        items = formal.type.shape
        splats = sum([isinstance(item, ast.Splat) for item in items])
        fixed = len(items) - splats
        if len(shape) < fixed or (not splats and len(shape) != fixed):
            wanted = f"{fixed} or more" if splats else str(fixed)
            raise Unsupported(f"operand {formal.name} of {self.operator.name} has rank {len(shape)}, not {wanted}")
        width = len(shape) - fixed
        axis = 0
        for item in items:
            if isinstance(item, ast.Splat):
                self._bind_extents(item.operand, shape[axis : axis + width], formal)
                axis += width
            else:
                self._bind_extents(item, shape[axis], formal)
                axis += 1

    def _bind_extents(self, pattern: ast.Expression, actual: Value, formal: ast.Input) -> None:
        if isinstance(pattern, ast.Name) and pattern.id not in self.scope.values:
            self.scope.values[pattern.id] = actual
            return
        expected = evaluate(pattern, self.scope)
        if not agree(expected, actual):
            raise Unsupported(
                f"operand {formal.name} of {self.operator.name}: extent {actual} where {expected} is needed"
            )

    # --- attributes and compile-time operands ---

    def bind_attributes(self) -> None:
        unknown = self.attributes.keys() - self.declared.attributes
        if unknown:
            raise Unsupported(f"{self.operator.name} has no attribute {', '.join(sorted(unknown))}")
        for formal in self.operator.inputs:
            if formal.constant is not None:
                required = formal.default is None and not formal.optional
                self._bind_attribute(formal.name, formal.constant, formal.default, required)
        for attribute in self.operator.attributes:
            self._bind_attribute(attribute.name, attribute.kind, attribute.default, attribute.required)

    def _default(self, kind: str, default: ast.Expression) -> Value:
        value = evaluate(default, self.scope)
        if kind == "float" and any(o is not None and o.dtype == "float64" for o in self.operands):
            return FUNCTIONS["single"](value)  # ONNX's own default is a float32, which doubles show
        return value

    def _bind_attribute(self, name: str, kind: str, default: ast.Expression | None, required: bool) -> None:
        value = self.attributes.get(name)
        if value is None:
            if required:
                raise Unsupported(f"{self.operator.name} needs {name} as a constant")
            self.scope.values[name] = None if default is None else self._default(kind, default)
        elif kind == "bool":
            self.scope.values[name] = bool(value)
        elif kind in ("ints", "floats", "strings"):
            self.scope.values[name] = as_list(value)
        elif kind in ("int", "float") and isinstance(value, tuple):
            if len(value) != 1:
                raise Unsupported(f"{name} of {self.operator.name} has {len(value)} values, not one")
            self.scope.values[name] = value[0]
        else:
            self.scope.values[name] = value
