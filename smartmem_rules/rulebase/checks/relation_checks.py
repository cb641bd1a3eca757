"""Rules beside rules: duplicates, subsumed ones, inverse pairs, rules that do not decrease."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.expansion import family_name
from smartmem_rules.language.fixes import advice, inserted, replacement
from smartmem_rules.rulebase.checks.meant.copies import copy_fix, operator_meant
from smartmem_rules.rulebase.identity import is_shipped


def check_kept_already(rules: Sequence[s.Keep]) -> Iterator[Diagnostic]:
    """A `keep` of an operator that another one keeps always."""
    always: dict[str, s.Keep] = {}
    for rule in rules:
        if not rule.guards:
            always.setdefault(rule.operator, rule)
    for rule in rules:
        other = always.get(rule.operator, rule)
        if other is not rule:
            yield Diagnostic(
                Code.KEPT_ALREADY,
                "error",
                f"`{other.name}` keeps every `{rule.operator}` of constants, so `{rule.name}` adds nothing",
                rule.place("name"),
                secondary=(other.place("name"), f"`{other.name}` is here"),
                fix=replacement("leave it out", rule.span, "")
                if rule.guards
                else advice(f"name the operator that `{rule.name}` is to keep, or leave it out"),
            )


def check_relations(
    rules: Sequence[s.Rewrite], operators: Mapping[str, Sequence[s.Operator]], files: Collection[str] | None = None
) -> Iterator[Diagnostic]:
    """The problems of rewrites with one another; the rules have their predicates and constants written out.

    With `files` only pairs are looked at of which one rule stands there.
    """
    from smartmem_rules.analysis.relations import BIDIRECTIONAL, Parts, Relations, Shape, root, shape  # start-up time

    commutative = frozenset(name for name, overloads in operators.items() if any(o.commutative for o in overloads))
    relations = Relations(commutative)
    sound = [rule for rule in rules if rule.unsound is None]
    parts = {id(rule): Parts.of(rule) for rule in sound}
    by_part: dict[tuple[str, object], list[s.Rewrite]] = {}
    # a rule that takes another one's step back has its sides the other way round
    by_shapes: dict[tuple[Shape, Shape], list[tuple[int, s.Rewrite]]] = {}
    shapes = {id(rule): (shape(rule.left), shape(rule.right)) for rule in sound}
    for place, rule in enumerate(sound):
        for side in (rule.left, rule.right) if rule.bidirectional else (rule.left,):
            for part in parts[id(rule)].keys:
                by_part.setdefault((root(side), part), []).append(rule)
        by_shapes.setdefault(shapes[id(rule)], []).append((place, rule))
    meant = {id(rule) for rule in sound if files is None or rule.span.file in files}
    known: set[tuple[str, str]] = set()
    for place, rule in enumerate(sound):
        # what is narrower has every part of this rule: the part that fewest rules have finds them
        rarest = min((by_part[root(rule.left), part] for part in parts[id(rule)].required), key=len)
        turned_over = by_part.get((root(rule.left), BIDIRECTIONAL), []) if not rule.bidirectional else []
        for other in {id(one): one for one in (*rarest, *turned_over)}.values():
            if other.name == rule.name or (rule.name, other.name) in known:
                continue
            if not (id(rule) in meant or id(other) in meant) or not parts[id(rule)].may_cover(parts[id(other)]):
                continue
            if relations.subsumes(rule, other):
                known |= {(rule.name, other.name), (other.name, rule.name)}
                yield from _subsumed(rule, other, relations.subsumes(other, rule), operators)
        for later, other in by_shapes.get(shapes[id(rule)][::-1], []):
            if later <= place or not (id(rule) in meant or id(other) in meant):
                continue
            if root(rule.left) and relations.inverse(rule, other):
                yield _inverse(rule, other)


def _inverse(first: s.Rewrite, second: s.Rewrite) -> Diagnostic:
    """Two rules of which each takes the other's step back; the one is told that its author can change."""
    fix = advice("write one rule with `<=>`, or guards of which only one can hold")
    if is_shipped(second.span.file) and not is_shipped(first.span.file):
        first, second = second, first
    does = f"`{first.name}`"
    if is_shipped(first.span.file) and not is_shipped(second.span.file):
        does = f"the built-in rule {does}"
        fix = advice(f"leave `{second.name}` out, or give it a guard that refuses what {does} makes")
    message = f"`{second.name}` takes back what {does} does"
    secondary = (first.place("name"), f"`{first.name}` is here")
    return Diagnostic(Code.INVERSE_PAIR, "warning", message, second.place("name"), secondary=secondary, fix=fix)


def _subsumed(
    general: s.Rewrite, specific: s.Rewrite, mutual: bool, operators: Mapping[str, Sequence[s.Operator]]
) -> Iterator[Diagnostic]:
    """A rule that another one makes needless; a user's rule may well be more general than a built-in one."""
    if is_shipped(specific.span.file) and not is_shipped(general.span.file):
        if not mutual:
            return
        general, specific = specific, general
    secondary = (general.place("name"), f"`{general.name}` is here")
    if mutual:
        message = f"`{specific.name}` says the same as `{general.name}`"
        note = "operands of commutative operators may stand in the other order"
        yield Diagnostic(
            Code.DUPLICATE_REWRITE,
            "error",
            message,
            specific.place("name"),
            secondary=secondary,
            note=note,
            fix=copy_fix(specific, general, operators),
        )
        return
    message = f"`{specific.name}` adds nothing to `{general.name}`, which is more general"
    text = "remove the narrower rule"
    fix = replacement(text, specific.span, "") if family_name(specific.name) == specific.name else advice(text)
    meant = operator_meant(specific, general, operators)
    if meant is not None:
        fix = advice(f"{meant}, or {text}")
    yield Diagnostic(Code.SUBSUMED, "warning", message, specific.place("name"), secondary=secondary, fix=fix)


def check_termination(rule: s.Rewrite, operators: Mapping[str, Sequence[s.Operator]]) -> Iterator[Diagnostic]:
    """A directed rule whose right side is not smaller and that does not say so."""
    from smartmem_rules.analysis.ordering import constant_names, decreases, measure  # start-up time

    if rule.bidirectional or rule.explores or rule.unsound is not None or rule.part_of is not None:
        return  # what a rule of several patterns makes is no match of it
    if decreases(rule, operators):
        return
    constants = constant_names(rule.guards)
    left, right = measure(rule.left, constants, operators), measure(rule.right, constants, operators)
    if not left[0]:
        return  # all of it is computed when the model is optimized
    before, after = (", ".join(map(str, side)) for side in (left, right))
    note = f"operators, work and operands are {before} before and {after} after"
    message = f"`{rule.name}` does not make its expression smaller"
    fix = inserted("add `explores` if other rules gain from it", rule.span, "\n    explores")
    yield Diagnostic(Code.NOT_DECREASING, "warning", message, rule.place("name"), note=note, fix=fix)
