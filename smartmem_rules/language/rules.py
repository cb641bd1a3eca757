"""The nodes of rules: patterns, rewrites, eliminations, equations of indices, and operators that are kept."""

from __future__ import annotations

from dataclasses import field

from smartmem_rules.language.expressions import Declaration, Expression
from smartmem_rules.records import dataclass


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
    part_of: str | None = field(default=None, repr=False)  # the rule of several patterns of which this is one equation
    derives: str | None = field(default=None, repr=False)  # the analysis of which this is a `derive` rule, written out


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
class Derive(Declaration):
    """`derive NAME fact(term) where guards`: the fact is known of the term."""

    name: str
    analysis: str
    term: Pattern
    guards: tuple[Expression, ...]
    comment: str
    tags: tuple[str, ...] = ()
    lets: tuple[RuleLet, ...] = ()
    cites: str | None = None


@dataclass(frozen=True, slots=True)
class Keep(Declaration):
    """The operator is not computed when the model is imported, even where all its operands are constants."""

    name: str
    operator: str
    guards: tuple[Expression, ...]
    comment: str
    defers: bool = False  # until the plan is made: templates that read floats have them computed and packed then
    tags: tuple[str, ...] = ()
    lets: tuple[RuleLet, ...] = ()
    cites: str | None = None


Rule = Rewrite | Eliminate | IndexRule | Derive | Keep
