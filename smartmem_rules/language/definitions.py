"""The syntax tree of operators: signatures, clauses and equations; `language.syntax` has all parts together."""

from __future__ import annotations

from dataclasses import field

from smartmem_rules.language.expressions import Binder, Declaration, Expression, Syntax
from smartmem_rules.records import dataclass


@dataclass(frozen=True, slots=True)
class TensorType(Syntax):
    """`T[*S, K]`: a dtype variable or class and a shape pattern (inputs) or shape expressions (outputs)."""

    dtype: str
    shape: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class DtypeVariable(Declaration):
    """`T: float | int` in the angle brackets of an operator."""

    name: str
    classes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Input(Declaration):
    """An input: a tensor, or with `constant` a compile-time value (`type` is then None)."""

    name: str
    type: TensorType | None
    constant: str | None  # ints | int | floats | float: the kind of the compile-time value
    optional: bool
    variadic: bool
    default: Expression | None


@dataclass(frozen=True, slots=True)
class Attribute(Declaration):
    name: str
    kind: str  # int | float | string | ints | floats | bool
    default: Expression | None
    required: bool


@dataclass(frozen=True, slots=True)
class Output(Declaration):
    """An output; `index` names the running number of a variadic one (`ys[j]: ...`)."""

    name: str
    type: TensorType
    index: str | None


@dataclass(frozen=True, slots=True)
class Let(Declaration):
    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Cost(Declaration):
    """`cost operations = e`: what extraction counts, in place of what follows from the definition."""

    quantity: str  # operations | bytes | launches
    value: Expression


@dataclass(frozen=True, slots=True)
class EquationSyntax(Declaration):
    """`y[*i, k] = body`; `view` marks a pure index map; locals give `*i < R` as index items."""

    tensor: str
    member: str | None  # the running number in `ys[j][*i] = ...`
    indices: tuple[Binder, ...]  # kind "loop" | "loops"; bound is a Name("_") where the signature gives it
    body: Expression
    view: bool
    scan: bool = False  # the body reads what this tensor and other scans hold one step before, along the first axis


@dataclass(frozen=True, slots=True)
class OnnxBinding(Declaration):
    domain: str
    name: str
    since: int
    until: int | None


@dataclass(frozen=True, slots=True)
class Operator(Declaration):
    name: str
    dtypes: tuple[DtypeVariable, ...]
    inputs: tuple[Input, ...]
    attributes: tuple[Attribute, ...]
    outputs: tuple[Output, ...]
    commutative: bool
    internal: bool
    onnx: OnnxBinding | None
    also: tuple[OnnxBinding, ...]  # further ONNX operators that it stands for
    requires: tuple[Expression, ...]
    lets: tuple[Let, ...]
    equations: tuple[EquationSyntax, ...]
    declared_class: str | None  # "ILD.Variable" ...
    declared_mapping: str | None  # "one_to_one" ...
    override: bool = False  # takes the place of a built-in definition, and says so
    reference: str | None = None  # "package.module:function", which computes the operator with numpy
    costs: tuple[Cost, ...] = ()
    expects: tuple[Expression, ...] = field(default=(), repr=False)
    """What is required of the elements of constants; no part of the text, as nothing that is proved depends on it."""
