"""Which element types the sides of a rewrite can have, by the dtype classes of the signatures alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from smartmem_rules.analysis.probes import allowed_dtypes
from smartmem_rules.language import syntax as s
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.binding import DTYPE_CLASSES

ALL = frozenset((*DTYPE_CLASSES["any"], *DTYPE_CLASSES["narrow"]))
_NUMBERS = frozenset(DTYPE_CLASSES["number"])


@dataclass
class Dtypes:
    """Infers dtypes bottom-up; `conflict` is the first application that no dtype fits, with the reason."""

    operators: Mapping[str, Sequence[s.Operator]]
    variables: dict[str, frozenset[str]] = field(default_factory=dict)
    conflict: tuple[s.Pattern, str] | None = None

    def of(self, pattern: s.Pattern, asked: frozenset[str] = ALL) -> frozenset[str]:
        """The dtypes that a pattern can have; empty where it cannot be made.

        Args:
            asked: the dtypes that what reads the pattern takes; nothing more is said of its variables without them.
        """
        if isinstance(pattern, s.PatternVariable):
            return self.variables.get(pattern.name, ALL)
        if isinstance(pattern, s.PatternNumber | s.PatternComputed):
            return _NUMBERS
        assert isinstance(pattern, s.PatternOperator)
        given = [self.of(argument) for argument in pattern.arguments]
        given_of = dict(zip(pattern.arguments, given, strict=True))
        results: set[str] = set()
        wanted = [set[str]() for _ in given]
        overloads = self.operators.get(pattern.operator, ())
        for operator in overloads:
            fit = _fit(operator, pattern, given, asked)
            if fit is not None:
                results |= fit[0]
                for all_, own in zip(wanted, fit[1], strict=True):
                    all_ |= own
        if not results:
            if self.conflict is None and overloads and asked == ALL:
                self.conflict = (pattern, _reason(pattern, given, overloads[0]))
            return ALL
        for argument, one in zip(pattern.arguments, wanted, strict=True):
            if isinstance(argument, s.PatternVariable):
                self.variables[argument.name] = self.variables.get(argument.name, ALL) & frozenset(one)
            elif isinstance(argument, s.PatternOperator) and not given_of[argument] <= one:
                self.of(argument, frozenset(one))
        return frozenset(results)


def _fit(
    operator: s.Operator, pattern: s.PatternOperator, given: Sequence[frozenset[str]], asked: frozenset[str]
) -> tuple[frozenset[str], list[frozenset[str]]] | None:
    """Dtypes of the result and of each argument under one overload, None where it takes none of them."""
    formals = [item for item in operator.inputs if item.constant is None]
    if formals and formals[-1].variadic:
        formals += [formals[-1]] * (len(given) - len(formals))
    if len(given) > len(formals):
        return None
    bound: dict[str, frozenset[str]] = {}
    for formal, actual in zip(formals, given, strict=False):
        assert formal.type is not None
        name = formal.type.dtype
        fixed = name in DTYPE_CLASSES and all(variable.name != name for variable in operator.dtypes)
        allowed = allowed_dtypes(operator, name) & actual
        if not fixed:
            allowed &= bound.get(name, ALL)
            bound[name] = allowed
        if not allowed:
            return None
    place = min(pattern.output or 0, len(operator.outputs) - 1)
    dtype = operator.outputs[place].type.dtype
    result = bound.get(dtype) or (allowed_dtypes(operator, dtype) if dtype in DTYPE_CLASSES else ALL)
    result &= asked
    if not result:
        return None
    if dtype in bound:
        bound[dtype] = result
    arguments = []
    for formal, actual in zip(formals, given, strict=False):
        assert formal.type is not None
        arguments.append(actual & bound.get(formal.type.dtype, allowed_dtypes(operator, formal.type.dtype)))
    return result, arguments


def _reason(pattern: s.PatternOperator, given: Sequence[frozenset[str]], operator: s.Operator) -> str:
    takes = ", ".join(
        f"`{item.name}` {_words(allowed_dtypes(operator, item.type.dtype))}"
        for item in operator.inputs
        if item.type is not None
    )
    return f"`{pattern.operator}` takes {takes}; here come {', '.join(map(_words, given)) or 'none'}"


def _words(dtypes: frozenset[str]) -> str:
    """A dtype class, or the dtypes themselves."""
    for name in ("any", "number", "float", "int"):
        if dtypes == frozenset(DTYPE_CLASSES[name]):
            return name
    return " | ".join(sorted(dtypes)) or "none"
