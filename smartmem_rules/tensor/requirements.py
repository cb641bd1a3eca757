"""What to say of a requirement that operands and attributes do not meet."""

from __future__ import annotations

from smartmem_rules.language import syntax as ast
from smartmem_rules.language.by_identity import ByIdentity
from smartmem_rules.language.expressions import conjuncts, nodes
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.tensor.builtins import describe
from smartmem_rules.tensor.definitions.values import Scope, truth

_LONGEST = 60
"""Characters of a value that are shown."""
_TEXTS: ByIdentity[ast.Expression, tuple[str, tuple[str, ...]]] = ByIdentity(4096)
"""Requirements as texts, with the names in them: a search for instances meets the same one again and again."""


def unmet(operator: str, requirement: ast.Expression, scope: Scope) -> str:
    """The part of a requirement that does not hold, and what the names in it stand for."""
    part = next((one for one in conjuncts(requirement) if not truth(one, scope)), requirement)
    text, names = _TEXTS.get(part, _text)
    values = ", ".join(f"{name} is {_shown(scope, name)}" for name in names if name in scope.values)
    return f"{operator} requires {text}{', but ' if values else ''}{values} ({part.span})"


def _text(part: ast.Expression) -> tuple[str, tuple[str, ...]]:
    names = dict.fromkeys(node.id for node in nodes(part) if isinstance(node, ast.Name))
    return print_expression(part), tuple(names)


def _shown(scope: Scope, name: str) -> str:
    value = describe(scope.values[name])
    return value if len(value) <= _LONGEST else f"{value[: _LONGEST - 3]}..."
