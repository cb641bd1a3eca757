"""Proofs by z3 beyond index rules: elementwise algebra over the reals, views of fixed rank for all extents.

An elementwise rewrite is proved for one scalar of each operand: operands that broadcast reach every element of the
result as some scalar, and both sides have one shape, because the engine refuses all else.  A view is proved to stay
inside its operand, for every extent at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from smartmem_rules.egraph.instances import Instances
from smartmem_rules.language import syntax as ast
from smartmem_rules.tensor.builtins import Unsupported
from smartmem_rules.tensor.expr import Apply, Const, Expr, Read, TensorType, reads
from smartmem_rules.tensor.index import Index, variable
from smartmem_rules.tensor.instantiate import FLOATS
from smartmem_rules.verify.case import Case
from smartmem_rules.verify.cases import Search
from smartmem_rules.verify.rewrites import directions
from smartmem_rules.verify.terms import Leaf, Term

MILLISECONDS = 3000
_CASES = 12
_ARITHMETIC = frozenset(
    [
        "add",
        "sub",
        "mul",
        "neg",
        "div",
        "recip",
        "abs",
        "min",
        "max",
        "select",
        "lt",
        "le",
        "gt",
        "ge",
        "eq",
        "ne",
        "and",
        "or",
        "not",
        "sign",
    ]
)


@dataclass(frozen=True)
class Proof:
    """What came of a proof: proved or unknown, by which method or for which reason."""

    answer: str
    method: str = ""
    reason: str = ""


class Unprovable(Exception):
    """A rule is outside of what is proved; the message says why."""


def prove_rewrite(rule: ast.Rewrite, instances: Instances) -> Proof:
    """Whether an elementwise rewrite holds for all real numbers."""
    try:
        import z3  # type: ignore[import-untyped]
    except ImportError:
        return Proof("unknown", reason="z3-solver is not installed")
    try:
        for left, right in directions(rule):
            _prove_direction(rule, left, right, instances, z3)
    except Unprovable as reason:
        return Proof("unknown", reason=str(reason))
    return Proof("proved", "all real numbers, elementwise")


def _prove_direction(rule: ast.Rewrite, left: ast.Pattern, right: ast.Pattern, instances: Instances, z3: Any) -> None:
    search = Search(rule, left, right, instances, 0)
    for case in itertools.islice(search.cases(8 * _CASES), 8 * _CASES):
        if case is None or case.left.type.dtype not in FLOATS or min(case.left.type.shape, default=0) < 2:
            continue
        if rule.guards and _depends_on_values(search):
            raise Unprovable("its guards speak of the values of constants")
        # without attributes and single values every instance has the same formula
        _prove_case(case, z3)
        return
    raise Unprovable("no instance of floats was found")


def _depends_on_values(search: Search) -> bool:
    return bool(search.hints.uniform or search.hints.near)


def _prove_case(case: Case, z3: Any) -> None:
    assert case.right is not None
    formulas = Formulas(z3)
    # only what the sides divide by is assumed not to be zero
    left, right = formulas.term(case.left), formulas.term(case.right)
    solver = z3.Solver()
    solver.set("timeout", MILLISECONDS)
    solver.add(*formulas.nonzero, left != right)
    answer = solver.check()
    if answer == z3.sat:
        raise Unprovable("z3 finds numbers at which one scalar of each side differs")
    if answer != z3.unsat:
        raise Unprovable(f"z3: {solver.reason_unknown()}")


class Formulas:
    """Translates elementwise terms into real arithmetic, one variable for each leaf."""

    def __init__(self, z3: Any) -> None:
        self.z3 = z3
        self.nonzero: list[Any] = []
        self.names: dict[str, Any] = {}

    def term(self, term: Term) -> Any:
        """A term at one element."""
        if isinstance(term, Leaf):
            if term.number is not None:
                return self.z3.RealVal(repr(term.number))
            return self.names.setdefault(term.name, self.z3.Real(term.name))
        if len(term.instance.equations) != 1:
            raise Unprovable(f"{term.operator} computes in several steps")
        equation = term.instance.equations[0]
        if term.attributes:
            raise Unprovable("an attribute may change the formula")
        operands = {f"${i}": self.term(o) for i, o in enumerate(term.operands) if o is not None}
        for read in reads(equation.body):
            # the last axes line up, and an extent of 1 is read at 0: broadcasting, and nothing else
            if len(read.indices) > len(equation.variables):
                raise Unprovable(f"{term.operator} is not elementwise")
            aligned = equation.variables[len(equation.variables) - len(read.indices) :]
            for index, var in zip(read.indices, aligned, strict=True):
                if index not in (variable(var), Index(0)):
                    raise Unprovable(f"{term.operator} is not elementwise")
        return self.expression(equation.body, operands)

    def expression(self, expr: Expr, operands: Mapping[str, Any]) -> Any:
        """An expression at one element."""
        match expr:
            case Const(value=value):
                if isinstance(value, float) and value in (float("inf"), float("-inf")):
                    raise Unprovable("an infinity is no real number")
                return self.z3.RealVal(repr(value)) if not isinstance(value, bool) else self.z3.BoolVal(value)
            case Read(tensor=tensor) if tensor in operands:
                return operands[tensor]
            case Apply(function="cast", arguments=(argument,), dtype=dtype) if (
                dtype in FLOATS and argument.dtype in FLOATS
            ):
                return self.expression(argument, operands)
            case Apply(function=function, arguments=arguments) if function in _ARITHMETIC:
                return self._apply(function, [self.expression(a, operands) for a in arguments])
            case Apply(function=function):
                raise Unprovable(f"{function} is not arithmetic")
            case _:
                raise Unprovable("it reduces or moves elements")

    def _apply(self, function: str, values: list[Any]) -> Any:
        z3 = self.z3
        a, b = values[0], values[-1]
        if function in ("div", "recip"):
            divisor = b if function == "div" else a
            self.nonzero.append(divisor != 0)
            return a / divisor if function == "div" else 1 / divisor
        plain = {"neg": lambda: -a, "not": lambda: z3.Not(a), "abs": lambda: z3.If(a >= 0, a, -a),
                 "sign": lambda: z3.If(a > 0, 1.0, z3.If(a < 0, -1.0, 0.0)),
                 "add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b,
                 "min": lambda: z3.If(a <= b, a, b), "max": lambda: z3.If(a >= b, a, b),
                 "lt": lambda: a < b, "le": lambda: a <= b, "gt": lambda: a > b, "ge": lambda: a >= b,
                 "eq": lambda: a == b, "ne": lambda: a != b, "and": lambda: z3.And(a, b), "or": lambda: z3.Or(a, b),
                 "select": lambda: z3.If(a, b, values[2])}  # fmt: skip
        return plain[function]()


# --- views -----------------------------------------------------------------------------------------------


def prove_eliminate(rule: ast.Eliminate, instances: Instances) -> Proof:
    """Whether a view without attributes is a bijection that stays inside, for all extents of the ranks 1 to 3."""
    try:
        import z3
    except ImportError:
        return Proof("unknown", reason="z3-solver is not installed")
    overloads = instances.base.operators.get(rule.operator, ())
    if (
        len(overloads) != 1
        or any(f.required for f in overloads[0].attributes)
        or any(i.constant is not None for i in overloads[0].inputs)
    ):
        return Proof("unknown", reason="its index map depends on attributes: tested at every index")
    try:
        for rank in (1, 2, 3):
            _prove_view(rule, instances, rank, z3)
    except (Unprovable, Unsupported) as reason:
        return Proof("unknown", reason=str(reason))
    return Proof("proved", "all extents of the ranks 1 to 3, default attributes")


_PRIMES = (101, 103, 107)
"""Extents that appear in an index map stand for the extents of their axes."""


def _prove_view(rule: ast.Eliminate, instances: Instances, rank: int, z3: Any) -> None:
    shape = _PRIMES[:rank]
    instance = instances.get(rule.operator, [TensorType("float32", shape)], {})
    read = instance.equations[0].view
    if read is None:
        raise Unprovable("no pure read")
    extents = {n: z3.Int(f"n{axis}") for axis, n in enumerate(shape)}
    solver = z3.Solver()
    solver.set("timeout", MILLISECONDS)
    places = {}
    for var in instance.equations[0].variables:
        if var.extent not in extents:
            raise Unprovable("an extent of the result is computed: tested at every index")
        places[var] = z3.Int(var.name)
        solver.add(places[var] >= 0, places[var] < extents[var.extent])
    outside = []
    for index, extent in zip(read.indices, shape, strict=True):
        if index.constant or any(atom not in places for atom, _ in index.terms):
            raise Unprovable("its index map divides: tested at every index")
        value = sum((c * places[atom] for atom, c in index.terms), z3.IntVal(0))  # type: ignore[index]
        outside.append(z3.Or(value < 0, value >= extents[extent]))
    solver.add(z3.Or(*outside))
    if solver.check() != z3.unsat:
        raise Unprovable("z3 cannot show that the map stays inside")
