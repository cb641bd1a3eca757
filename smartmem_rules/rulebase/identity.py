"""Which definitions are of one operator: those of one name in one domain.

Rules speak of operators by name. A name means the operator that the built-in files give it to (or else the first that
has it); an operator of another domain with that name is another operator, and has an inner name of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path

from smartmem_rules.language import syntax as s
from smartmem_rules.records import dataclass
from smartmem_rules.resources import rules_path


@lru_cache(maxsize=1024)
def is_shipped(file: str) -> bool:
    """Whether a file is one of the built-in rules."""
    return Path(file).resolve().is_relative_to(rules_path().resolve())


@lru_cache(maxsize=1024)
def shown_file(file: str) -> str:
    """A rule file for readers elsewhere: a built-in one as `rules/algebra.smr`, any other as it was given."""
    if not is_shipped(file):
        return file
    return f"rules/{Path(file).resolve().relative_to(rules_path().resolve()).as_posix()}"


def bindings(operator: s.Operator) -> list[s.OnnxBinding]:
    """The ONNX operators that a definition stands for."""
    return [binding for binding in (operator.onnx, *operator.also) if binding is not None]


def domains(operator: s.Operator) -> frozenset[str]:
    """The domains that an operator belongs to; none for one that rules alone make."""
    return frozenset(binding.domain for binding in bindings(operator))


@dataclass
class Identities:
    """The domains that each name stands for."""

    known: dict[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, items: Iterable[s.Item]) -> Identities:
        """The built-in definitions decide, then the others in their order."""
        operators = [item for item in items if isinstance(item, s.Operator)]
        found = cls()
        for operator in sorted(operators, key=lambda one: not is_shipped(one.span.file)):
            own = domains(operator)
            known = found.known.setdefault(operator.name, own)
            if is_shipped(operator.span.file) or not own or own & known:
                found.known[operator.name] = known | own
        return found

    def is_other(self, operator: s.Operator) -> bool:
        """Whether an operator is not the one that its name means."""
        own = domains(operator)
        return bool(own) and own.isdisjoint(self.known.get(operator.name, own))

    def identified(self, item: s.Item) -> s.Item:
        """The item; an operator that is not what its name means under an inner name."""
        if isinstance(item, s.Operator) and self.is_other(item):
            return replace(item, name=inner_name(item))
        return item


def inner_name(operator: s.Operator) -> str:
    """A name that no author writes, made of the operator's own and its domain."""
    domain = min(domains(operator))
    return f"{operator.name}__{re.sub(r'[^0-9A-Za-z]', '_', domain)}"


@dataclass(frozen=True)
class BuiltIn:
    """The built-in definitions of a set of operators, by their name and by the ONNX operators that they stand for."""

    by_word: Mapping[str | tuple[str, str], Sequence[tuple[int, s.Operator]]]

    @classmethod
    def of(cls, operators: Mapping[str, Sequence[s.Operator]]) -> BuiltIn:
        """Those of all overloads."""
        found: dict[str | tuple[str, str], list[tuple[int, s.Operator]]] = {}
        shipped = ((n, o) for n, overloads in operators.items() for o in overloads if is_shipped(o.span.file))
        for place, (name, operator) in enumerate(shipped):
            words: list[str | tuple[str, str]] = [name]
            words += [(one.domain, one.name) for one in bindings(operator)]
            for word in words:
                found.setdefault(word, []).append((place, operator))
        return cls(found)

    def replaced_by(self, operator: s.Operator) -> list[s.Operator]:
        """The definitions in whose place one of a user's file may be taken, in the order of the files."""
        if is_shipped(operator.span.file):
            return []
        words: list[str | tuple[str, str]] = [operator.name]
        words += [(one.domain, one.name) for one in bindings(operator)]
        found = {place: one for word in words for place, one in self.by_word.get(word, ())}
        return [found[place] for place in sorted(found)]
