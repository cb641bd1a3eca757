"""What an author forgot who names a value that the rule does not use."""

from __future__ import annotations

from collections.abc import Iterator

from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import conjuncts, nodes
from smartmem_rules.language.fixes import Fix, advice, replacement
from smartmem_rules.language.patterns import subpatterns


def unused_let_meant(rule: s.Rule, let: s.RuleLet, may_be_number: bool) -> Fix:
    """A comparison with the constant that the rule drops; else to leave the name out, or to use it."""
    if isinstance(rule, s.Rewrite):
        if may_be_number:
            dropped = list(_dropped_constants(rule))
            if len(dropped) == 1:
                return _compared_with(rule, dropped[0], let.name)
        if rule.part_of is not None:
            return advice("use it in the right side of the pattern that it belongs to, or leave it out")
    said = "leave it out, or use it; a constant of the whole file begins with an upper-case letter"
    return replacement(said, let.span, "")


def _dropped_constants(rule: s.Rewrite) -> Iterator[str]:
    """Constants of the left side that the right side does not have, and whose value nothing is compared with."""
    kept = {part.name for part in subpatterns(rule.right) if isinstance(part, s.PatternVariable)}
    asked = set(_asked(rule.guards, "value")) | {
        read.base.id
        for node in nodes(rule.guards)
        if isinstance(node, s.Reduction)
        for read in nodes(node)
        if isinstance(read, s.Subscript) and isinstance(read.base, s.Name)
    }
    used = {node.id for node in nodes(rule.right) if isinstance(node, s.Name)}
    left = (part.name for part in subpatterns(rule.left) if isinstance(part, s.PatternVariable))
    constants = {
        guard.arguments[0].id
        for guard in conjuncts(*rule.guards)
        if isinstance(guard, s.Call) and guard.function == "constant" and isinstance(guard.arguments[0], s.Name)
    }
    yield from (name for name in dict.fromkeys(left) if name in constants - kept - asked - used)


def _asked(guards: tuple[s.Expression, ...], function: str) -> Iterator[str]:
    """The names of which guards ask for the value of a function, otherwise than whether there is one."""
    for guard in conjuncts(*guards):
        if isinstance(guard, s.Call) and guard.function == "present":
            continue
        for node in nodes(guard):
            if isinstance(node, s.Call) and node.function == function and isinstance(node.arguments[0], s.Name):
                yield node.arguments[0].id


def _compared_with(rule: s.Rewrite, constant: str, name: str) -> Fix:
    wanted = f"value({constant}) == {name}"
    said = f"nothing is compared with `{constant}`, which the right side leaves out, so the rule takes any constant"
    for guard in rule.guards:
        match guard:
            case s.Call(function="present", arguments=(s.Call(function="value", arguments=(s.Name(id=of),)),)):
                if of == constant:
                    return replacement(f"{said}: write `{wanted}`", guard.span, wanted)
            case _:
                pass
    return advice(f"{said}: add the guard `{wanted}`, or leave `{name}` out")
