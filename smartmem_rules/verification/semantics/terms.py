"""The sides of a rule as terms: operator applications over leaves, at concrete types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

from smartmem_rules.guards.computed import computed_number
from smartmem_rules.language import syntax as ast
from smartmem_rules.language.by_identity import ByIdentity
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.rulebase.patterns import is_absent, right_outputs, run_time_arguments
from smartmem_rules.rulebase.queries import queries_of
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.binding import operand_name, output_name
from smartmem_rules.tensor.builtins import Unsupported, Value
from smartmem_rules.tensor.definitions.values import Scope, TensorName, evaluate, truth
from smartmem_rules.tensor.expr import (
    Apply,
    Const,
    Equation,
    Expr,
    Read,
    Reduce,
    Select,
    TensorType,
    children,
    rename_reads,
    walk,
)
from smartmem_rules.tensor.instantiate import Instance
from smartmem_rules.tensor.lazy import lazy
from smartmem_rules.verification.semantics.domains import Domain, Value as Elements
from smartmem_rules.verification.semantics.evaluate import evaluate as evaluate_equations


@dataclass(frozen=True)
class Leaf:
    """A tensor that a pattern binds, or a number; `number` is then its value."""

    name: str
    type: TensorType
    number: float | int | None = None


@dataclass(frozen=True)
class Application:
    """One output of an operator applied to terms."""

    operator: str
    operands: tuple[Term | None, ...]
    attributes: Mapping[str, Value] = field(hash=False)
    outputs: int
    place: int
    instance: Instance = field(hash=False, compare=False, repr=False)

    @lazy
    def _hash(self) -> int:
        return hash((self.operator, self.operands, self.outputs, self.place))

    def __hash__(self) -> int:
        return self._hash

    @property
    def type(self) -> TensorType:
        """The type of the output."""
        return self.instance.outputs[self.place]


def guards_hold(rule: ast.Eliminate, term: Application, instances: Instances) -> bool:
    """Whether the guards of an elimination admit an operator with its operands, be these constants or not.

    Raises:
        DefinitionError, Unsupported: a guard cannot be computed there.
    """
    formals = [i.name for i in term.instance.operator.inputs if i.constant is None]
    types = {n: o.type for n, o in zip(formals, term.operands, strict=False) if o is not None}
    tensors = {name: TensorName(name, type_) for name, type_ in types.items()}
    return any(
        all(truth(guard, scope) for guard in rule.guards)
        for answers in (_Operands(False), _Operands(True))
        for scope in [
            Scope(dict(term.instance.values), dict(tensors), instances.base.functions, queries_of(types, answers))
        ]
    )


@dataclass(frozen=True)
class _Operands:
    """What the guards of an elimination are told of operands."""

    constants: bool

    def rank(self, subject: TensorType) -> int:
        return len(subject.shape)

    def constant(self, subject: TensorType) -> bool:
        del subject
        return self.constants

    def value(self, subject: TensorType) -> float | None:
        del subject
        return None

    def uses(self, subject: TensorType, name: str) -> int:
        del subject, name
        return 1


Term = Leaf | Application

# An instance is made of the types of its operands, and is the same for many terms.
_FUNCTIONS: ByIdentity[Instance, frozenset[str]] = ByIdentity(1 << 13)
_INSIDE: ByIdentity[Instance, bool] = ByIdentity(1 << 13)
_LEAST: ByIdentity[Instance, int] = ByIdentity(1 << 13)


def subterms(term: Term) -> Iterator[Term]:
    """A term and all below it, operands first, equal ones each time."""
    if isinstance(term, Application):
        for operand in term.operands:
            if operand is not None:
                yield from subterms(operand)
    yield term


def leaves(term: Term) -> dict[str, Leaf]:
    """The leaves of a term by name."""
    return {t.name: t for t in subterms(term) if isinstance(t, Leaf)}


def functions_used(term: Term) -> set[str]:
    """The primitives and reductions by which a term computes."""
    found: set[str] = set()
    for part in subterms(term):
        if isinstance(part, Application):
            found |= _FUNCTIONS.get(part.instance, _functions_of)
    return found


def _functions_of(instance: Instance) -> frozenset[str]:
    return frozenset().union(*map(equation_functions, instance.equations))


def equation_functions(equation: Equation) -> set[str]:
    """The primitives and reductions of one equation."""
    found: set[str] = set()
    for node in walk(equation.body):
        if isinstance(node, Apply):
            found.add(node.function)
        elif isinstance(node, Reduce):
            found.add(node.kind)
        elif isinstance(node, Const) and isinstance(node.value, float) and node.value in (float("inf"), float("-inf")):
            found.add("max")  # an infinity needs an order
    return found


def compute(term: Term, values: Mapping[str, Elements], domain: Domain) -> Elements:
    """The elements of a term; equal sub-terms are computed once.

    Raises:
        Undefined: the domain has no value here.
    """
    return _Computed(values, domain).of(term)


class _Computed:
    """The elements of terms; a class, as a function that calls itself is a cycle, which would keep all arrays."""

    def __init__(self, values: Mapping[str, Elements], domain: Domain) -> None:
        self.values = values
        self.domain = domain
        self.known: dict[Term, Elements] = {}
        self.results: dict[tuple[int, tuple[Term | None, ...]], dict[str, Elements]] = {}

    def of(self, term: Term) -> Elements:
        """The elements of a term."""
        if isinstance(term, Leaf):
            return self.values[term.name]
        found = self.known.get(term)
        if found is None:
            operands = [None if o is None else self.of(o) for o in term.operands]
            key = id(term.instance), term.operands  # the term keeps its instance alive
            if key not in self.results:
                named = {operand_name(i): o for i, o in enumerate(operands) if o is not None}
                self.results[key] = evaluate_equations(term.instance.equations, named, self.domain)
            found = self.known[term] = self.results[key][output_name(term.place)]
        return found


def build_right(
    pattern: ast.Pattern,
    leaf: Callable[[str], Term],
    members: Callable[[str], tuple[Term, ...]],
    bundles: Mapping[str, Mapping[str, Value]],
    scope: Scope,
    instances: Instances,
    dtype: str,
) -> Term:
    """The term of a right side, as the engine builds it.

    Raises:
        Unsupported, DefinitionError: the engine would turn the match down.
    """

    def visit(current: ast.Pattern) -> Term | None:
        if is_absent(current):
            return None
        if isinstance(current, ast.PatternVariable):
            return leaf(current.name)
        if isinstance(current, ast.PatternNumber):
            return Leaf(f"{current.value}", TensorType(dtype, ()), current.value)
        if isinstance(current, ast.PatternComputed):
            number = computed_number(current.value, scope, dtype)
            return Leaf(f"{number}", TensorType(dtype, ()), number)
        assert isinstance(current, ast.PatternOperator)
        operands = [visit(argument) for argument in run_time_arguments(current)]
        if current.variadic is not None:
            operands += members(current.variadic)
        attributes: dict[str, Value] = dict(bundles[current.bundle]) if current.bundle is not None else {}
        for attribute in current.attributes:
            attributes[attribute.name] = evaluate(attribute.value, scope)
        attributes = {name: value for name, value in attributes.items() if value is not None}
        outputs = right_outputs(current, instances.base.operators)
        return apply_operator(current.operator, operands, attributes, outputs, current.output or 0, instances)

    term = visit(pattern)
    assert term is not None
    return term


def apply_operator(
    operator: str,
    operands: list[Term | None],
    attributes: Mapping[str, Value],
    outputs: int,
    place: int,
    instances: Instances,
    instance: Instance | None = None,
) -> Application:
    """An operator applied to terms.

    Args:
        instance: what `instances` gives for the operator and the types of these terms, where that is known already.

    Raises:
        Unsupported: no overload takes the terms.
    """
    if instance is None:
        types = [None if o is None else o.type for o in operands]
        try:
            instance = instances.get(operator, types, attributes, outputs)
        except (ValueError, IndexError, TypeError, KeyError, OverflowError, ZeroDivisionError) as failure:
            # attributes that no model has can break a definition where it builds its equations
            raise Unsupported(str(failure)) from failure
    return Application(operator, tuple(operands), attributes, outputs, place, instance)


def reads_inside(term: Application) -> bool:
    """Whether no unconditional read leaves its operand: else the operands do not fit."""
    known = _INSIDE.known.get(id(term.instance))  # most are: asked without a call, as this is asked of every draw
    return _INSIDE.get(term.instance, lambda _: _reads_inside(term)) if known is None else known[1]


def _reads_inside(term: Application) -> bool:
    shapes = {operand_name(i): o.type.shape for i, o in enumerate(term.operands) if o is not None}
    return all(_is_never(e.variables) or _inside(e.body, shapes) for e in term.instance.equations)


def is_empty(term: Term) -> bool:
    """Whether a tensor of a term has no elements."""
    return any(part.type.elements == 0 for part in subterms(term))


def least_extent(term: Application) -> int:
    """The least extent of the loops and results of an operator; negative where its operands do not fit."""
    known = _LEAST.known.get(id(term.instance))
    return _LEAST.get(term.instance, _least_extent) if known is None else known[1]


def _least_extent(instance: Instance) -> int:
    loops = [n.variables for e in instance.equations for n in walk(e.body) if isinstance(n, Reduce)]
    return min((v.extent for vs in (*loops, *(e.variables for e in instance.equations)) for v in vs), default=1)


def _is_never(variables: tuple[Var, ...]) -> bool:
    return any(v.extent == 0 for v in variables)


def _inside(expr: Expr, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    if isinstance(expr, Select) or (isinstance(expr, Reduce) and _is_never(expr.variables)):
        return True  # the condition keeps the read inside, or nothing is read
    if isinstance(expr, Read) and expr.tensor in shapes:
        for index, extent in zip(expr.indices, shapes[expr.tensor], strict=True):
            low, high = index.interval
            if not index.gathered and (low < 0 or high >= extent):
                return False
    return all(_inside(child, shapes) for child in children(expr))


def flatten(term: Term, result: str) -> list[Equation]:
    """All equations of a term over its leaves' names, in order; the last tensor is named `result`."""
    equations: list[Equation] = []
    names: dict[Term, str] = {}

    def visit(current: Term) -> str:
        if isinstance(current, Leaf):
            return current.name
        if current not in names:
            number = len(names)
            mapping = {operand_name(i): visit(o) for i, o in enumerate(current.operands) if o is not None}
            prefix = f"{result}.{number}"
            number = len(names)
            own = f"{prefix}.{number}"
            for equation in current.instance.equations:
                mapping.setdefault(equation.tensor, f"{own}.{equation.tensor}")
            for equation in current.instance.equations:
                body = rename_reads(equation.body, mapping)
                equations.append(Equation(mapping[equation.tensor], equation.variables, body, equation.type))
            names[current] = mapping[output_name(current.place)]
        return names[current]

    visit(term)
    return equations


def term_text(term: Term | None) -> str:
    """A term as rule files write it."""
    if term is None:
        return "_"
    if isinstance(term, Leaf):
        return str(term.number) if term.number is not None else term.name
    operands = ", ".join(term_text(o) for o in term.operands)
    attributes = ", ".join(f"{n} = {v!r}" for n, v in sorted(term.attributes.items()))
    place = f".{term.place}" if term.place or term.outputs > 1 else ""
    return f"{term.operator}({operands}{'; ' if attributes else ''}{attributes}){place}"
