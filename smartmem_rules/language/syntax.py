"""The syntax tree of the rule language.

Every node carries the span of the source text it was read from, so that each later stage can point at
the line that caused it.  The tree is immutable; `language.parsing.parser` builds it, `rulebase.checks` judges it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from smartmem_rules.language.expressions import (
    NOWHERE,
    Binary,
    Binder,
    Broadcast,
    Call,
    Comprehension,
    Conditional,
    Declaration,
    Expression,
    ListOf,
    Name,
    Number,
    Reduction,
    Slice,
    Span,
    Splat,
    Subscript,
    Syntax,
    Text,
    Truth,
    Unary,
    parts_of,
)

__all__ = [
    "NOWHERE",
    "Attribute",
    "Binary",
    "Binder",
    "Block",
    "Broadcast",
    "Call",
    "Comprehension",
    "Conditional",
    "Constant",
    "Declaration",
    "DtypeVariable",
    "Eliminate",
    "Entry",
    "EquationSyntax",
    "Expression",
    "Family",
    "Function",
    "Import",
    "IndexRule",
    "Input",
    "Item",
    "Keep",
    "Let",
    "ListOf",
    "Module",
    "Name",
    "Number",
    "OnnxBinding",
    "Operator",
    "OperatorFamily",
    "Output",
    "Pattern",
    "PatternAttribute",
    "PatternComputed",
    "PatternNumber",
    "PatternOperator",
    "PatternVariable",
    "Predicate",
    "Reduction",
    "Rewrite",
    "Rule",
    "RuleLet",
    "Ruleset",
    "Slice",
    "Span",
    "Splat",
    "Subscript",
    "Syntax",
    "Table",
    "TensorType",
    "Term",
    "Text",
    "Truth",
    "Unary",
    "parts_of",
]

# --- operators ---------------------------------------------------------------------------------------


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


@dataclass(frozen=True, slots=True)
class Function(Declaration):
    """`function f(a, b) = e`: a compile-time function over numbers, lists and strings."""

    name: str
    parameters: tuple[str, ...]
    body: Expression


@dataclass(frozen=True, slots=True)
class OperatorFamily(Declaration):
    """`family Rectifier = Relu | Abs`: in a pattern any one of the operators, the same one wherever the name stands."""

    name: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Predicate(Declaration):
    """`predicate p(t, n) = condition`: a named guard; its parameters may be tensors."""

    name: str
    parameters: tuple[str, ...]
    body: Expression
    comment: str


@dataclass(frozen=True, slots=True)
class Constant(Declaration):
    """`let HALF = 0.5`: a named value for guards, attributes, definitions and, as a number, for patterns."""

    name: str
    value: Expression
    comment: str


@dataclass(frozen=True, slots=True)
class Ruleset(Declaration):
    """`ruleset late after algebra`: a set of rules and the sets that run before it."""

    name: str
    after: tuple[str, ...]
    comment: str


# --- rules -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pattern(Declaration):
    pass


@dataclass(frozen=True, slots=True)
class PatternVariable(Pattern):
    name: str


@dataclass(frozen=True, slots=True)
class PatternNumber(Pattern):
    """A constant tensor all of whose elements equal this number."""

    value: int | float


@dataclass(frozen=True, slots=True)
class PatternComputed(Pattern):
    """A constant tensor without axes of a right side: one number, computed when the rule is applied."""

    value: Expression


@dataclass(frozen=True, slots=True)
class PatternAttribute(Declaration):
    """`axis = e`: on the left a Name binds the attribute, anything else must equal it; on the right it is computed."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class PatternOperator(Pattern):
    """`Op(a, b; axis = e, @rest)`; `_` stands for an absent optional input."""

    operator: str
    arguments: tuple[Pattern, ...]
    attributes: tuple[PatternAttribute, ...]
    bundle: str | None  # the name after `@`: all attributes of the matched node
    variadic: str | None  # the name of `*xs`: all further operands
    output: int | None  # `Op(...).1`


@dataclass(frozen=True, slots=True)
class Term(Expression):
    """A term that a `let` of the rule names, in a guard or attribute: what `shape(t)` asks about."""

    pattern: Pattern


@dataclass(frozen=True, slots=True)
class RuleLet(Declaration):
    """`let t = Mul(x, y)` or `let n = rank(x)` in a rule: a name for a term or for a value."""

    name: str
    value: Expression | Pattern
    used: bool = field(default=True, compare=False)
    """Whether anything of the rule speaks of it."""


@dataclass(frozen=True, slots=True)
class Rewrite(Declaration):
    name: str
    ruleset: str
    left: Pattern
    right: Pattern
    bidirectional: bool
    guards: tuple[Expression, ...]
    relaxes: tuple[str, ...]  # reassociation | nan | infinities | signed_zero
    unsound: str | None  # the counterexample of a rule that is kept as a warning; never compiled
    comment: str
    explores: bool = False  # the right side need not be better: other rules decide
    tags: tuple[str, ...] = ()
    lets: tuple[RuleLet, ...] = ()
    cites: str | None = None  # where the rule comes from


@dataclass(frozen=True, slots=True)
class Eliminate(Declaration):
    """The operator may become an index map inside its neighbours."""

    name: str
    ruleset: str
    operator: str
    guards: tuple[Expression, ...]
    comment: str
    tags: tuple[str, ...] = ()
    lets: tuple[RuleLet, ...] = ()
    cites: str | None = None


@dataclass(frozen=True, slots=True)
class IndexRule(Declaration):
    """An equation of index arithmetic; free names are index variables or constants."""

    name: str
    left: Expression
    right: Expression
    guards: tuple[Expression, ...]
    comment: str
    tags: tuple[str, ...] = ()
    lets: tuple[RuleLet, ...] = ()
    cites: str | None = None


@dataclass(frozen=True, slots=True)
class Keep(Declaration):
    """The operator is computed when the model runs, even where all its operands are constants."""

    name: str
    operator: str
    guards: tuple[Expression, ...]
    comment: str
    tags: tuple[str, ...] = ()
    lets: tuple[RuleLet, ...] = ()
    cites: str | None = None


@dataclass(frozen=True, slots=True)
class Table(Declaration):
    """A complete table over pairs of classes: `cells[first, second]` is a tuple of words."""

    name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: dict[tuple[str, str], tuple[str, ...]] = field(hash=False)


@dataclass(frozen=True, slots=True)
class Entry(Declaration):
    """`key value value ...;` in a block."""

    key: str
    values: tuple[int | float | str, ...]


@dataclass(frozen=True, slots=True)
class Block(Declaration):
    """`device pocl { ... }`, `schedule NAME for KIND { ... }`, `level NAME { ... }`, `layout`, `fuse`."""

    kind: str
    name: str
    subject: str | None
    entries: tuple[Entry, ...]
    comment: str


@dataclass(frozen=True, slots=True)
class Import(Declaration):
    path: str


@dataclass(frozen=True, slots=True)
class Family(Declaration):
    """`for Op, n in (Relu, 1), (Exp, 2) { items }`: the items once for each member.

    A rule of a family is named `NAME.MEMBER`, by the member's first word; its plain name stands for all of them.
    """

    variables: tuple[str, ...]
    members: tuple[tuple[Expression, ...], ...]
    items: tuple[Item, ...]


Rule = Rewrite | Eliminate | IndexRule | Keep
Item = Import | OperatorFamily | Function | Predicate | Constant | Ruleset | Family | Operator | Rule | Table | Block


@dataclass(frozen=True, slots=True)
class Module(Syntax):
    """One `.smr` file."""

    items: tuple[Item, ...]
    text: str = field(compare=False, repr=False)
