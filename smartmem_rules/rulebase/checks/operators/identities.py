"""Whether a definition is of the operator that its author means: names in several domains, built-in ones replaced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.fixes import advice, replacement
from smartmem_rules.rulebase.identity import BuiltIn, Identities, bindings, domains, is_shipped
from smartmem_rules.tensor.instantiate import Definitions

_PROBES = 6


def check_domains(items: Sequence[s.Item], identities: Identities) -> Iterator[Diagnostic]:
    """Operators that have the name of another domain's operator."""
    operators = [item for item in items if isinstance(item, s.Operator)]
    for operator in operators:
        if not identities.is_other(operator):
            continue
        namesakes = [o for o in operators if o.name == operator.name and not identities.is_other(o)]
        owner = next(filter(domains, namesakes), namesakes[0])
        own, others = (" and ".join(sorted(domains(one))) for one in (operator, owner))
        yield Diagnostic(
            Code.NAME_OF_OTHER_DOMAIN,
            "warning",
            f"`{operator.name}` of {own} is not the `{operator.name}` that rules speak of, which belongs to "
            f"{others or 'no domain'}",
            operator.place("name"),
            secondary=(owner.place("name"), "rules mean this one"),
            fix=advice(f"to use it in rules, call the definition otherwise; `onnx {_binding(operator)} ;` stays"),
        )


def check_override(
    base: Definitions, built_in: BuiltIn, operator: s.Operator, written: s.Operator
) -> Iterator[Diagnostic]:
    """Definitions of a user's file that take the place of a built-in one unsaid, or say so and do not."""
    replaced = _replaced(base, built_in, operator)
    if replaced is None:
        if written.override:
            message = f"`{written.name}` takes the place of no built-in definition"
            place = written.place("override")
            fix = replacement("leave `override` out", place, "")
            yield Diagnostic(Code.OVERRIDE, "warning", message, place, fix=fix)
        return
    if written.override:
        return  # what is said is meant; `optimize` tells whose place is taken
    secondary = (replaced.place("name"), "this definition is built in")
    yield Diagnostic(
        Code.OVERRIDE,
        "error",
        f"`{written.name}` would take the place of a built-in definition of the same operands",
        written.place("name"),
        secondary=secondary,
        fix=advice(
            "write the clause `override` if that is meant; else give it a name of its own and write "
            f"`onnx my.ops::{written.name};`"
        ),
    )


def _replaced(base: Definitions, built_in: BuiltIn, operator: s.Operator) -> s.Operator | None:
    """The built-in definition that accepts something that this one accepts, None where there is none."""
    from smartmem_rules.analysis.tries import tried  # start-up time
    from smartmem_rules.tensor.builtins import DefinitionError, Unsupported  # start-up time
    from smartmem_rules.tensor.instantiate import instantiate_overload  # start-up time

    if is_shipped(operator.span.file):
        return None
    candidates = [one for one in built_in.replaced_by(operator) if _meet(one, operator)]
    if not candidates:
        return None
    for probe in tried(base, operator, _PROBES).probes:
        for candidate in candidates:
            known = {a.name for a in candidate.attributes} | {i.name for i in candidate.inputs if i.constant}
            given = {name: value for name, value in probe.attributes.items() if name in known}
            try:
                instantiate_overload(base, candidate, probe.operands, given, types_only=True)
            except (Unsupported, DefinitionError, ArithmeticError, LookupError, TypeError, ValueError):
                continue
            return candidate
    return None


def _meet(one: s.Operator, other: s.Operator) -> bool:
    """Whether some opset knows both definitions."""
    pairs = [(a, b) for a in bindings(one) for b in bindings(other) if (a.domain, a.name) == (b.domain, b.name)]
    if not pairs:
        return True
    return any(a.since <= (b.until or a.since) and b.since <= (a.until or b.since) for a, b in pairs)


def _binding(operator: s.Operator) -> str:
    first = bindings(operator)[0]
    return f"{first.domain}::{first.name}"


def overridden(operators: Mapping[str, Sequence[s.Operator]]) -> list[s.Operator]:
    """The definitions that say that they take the place of built-in ones, in the order of the rule base."""
    return [one for overloads in operators.values() for one in overloads if one.override]
