"""Where names are defined and used: the index behind definition, references, rename and hover."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields

from smartmem_rules.language import syntax as s
from smartmem_rules.language.expansion import bound_in
from smartmem_rules.language.expressions import nodes
from smartmem_rules.language.patterns import OR
from smartmem_rules.language.roots import ROOTS
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.checks.scope import head

GLOBAL = ""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name with its meaning; `scope` is the item that a local name belongs to, empty for all others."""

    kind: str  # operator | function | constant | rule | ruleset | table | fuse | local
    name: str
    scope: str = GLOBAL


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One place of a symbol; `item` is what it defines there."""

    symbol: Symbol
    span: s.Span
    item: s.Syntax | None = None

    @property
    def is_definition(self) -> bool:
        return self.item is not None


def occurrences(module: s.Module) -> list[Occurrence]:
    """All places of a file, each name with its narrow span."""
    lines = module.text.split("\n")
    found: list[Occurrence] = []
    for item in module.items:
        found += _item(item, {})
    return [Occurrence(one.symbol, _narrow(one.span, one.symbol.name, lines), one.item) for one in found]


def _narrow(span: s.Span, name: str, lines: list[str]) -> s.Span:
    """The name itself; a name in parentheses has their span."""
    if span.line == span.end_line and span.end_column - span.column == len(name):
        return span
    text = lines[span.line - 1] if span.line <= len(lines) else ""
    place = text.find(name, span.column - 1)
    column = span.column if place < 0 else place + 1
    return s.Span(span.file, span.line, column, span.line, column + len(name))


def _item(item: s.Item, outer: Mapping[str, Symbol]) -> Iterator[Occurrence]:
    match item:
        case s.Family():
            scope = str(item.span)
            inner = {**outer, **{name: Symbol("local", name, scope) for name in item.variables}}
            for name in item.variables:
                yield Occurrence(inner[name], item.place(f"variables:{name}"), item)
            made = {one.name: one for one in item.items if isinstance(one, s.Operator)}
            for member in item.members:
                for variable, word in zip(item.variables, member, strict=False):
                    if isinstance(word, s.Name):
                        kind = "operator" if word.id[:1].isupper() else "function"
                        symbol = outer.get(word.id) or Symbol(kind, word.id)
                        yield Occurrence(symbol, word.span, made.get(variable))
            for one in item.items:
                yield from _item(one, inner)
        case s.Ruleset():
            yield Occurrence(Symbol("ruleset", item.name), item.place("name"), item)
            for name in item.after:
                yield Occurrence(Symbol("ruleset", name), item.place(f"after:{name}"))
        case s.OperatorFamily():
            yield Occurrence(Symbol("operator", item.name), item.place("name"), item)
            for name in item.members:
                yield Occurrence(Symbol("operator", name), item.place(f"members:{name}"))
        case s.Table():
            yield Occurrence(Symbol("table", item.name), item.place("name"), item)
        case s.Block():
            yield from _block(item)
        case s.Import():
            return
        case _:
            yield from _Walk(item, outer).run()


def _block(block: s.Block) -> Iterator[Occurrence]:
    yield Occurrence(Symbol(block.kind, block.name), block.place("name"), block)
    kinds = {"rulesets": "ruleset", "table": "table", "fuse": "fuse", "layout": "layout", "matrix": "matrix"}
    for entry in block.entries:
        if block.kind in ("level", "device") and entry.key in kinds:
            for number, value in enumerate(entry.values):
                yield Occurrence(Symbol(kinds[entry.key], str(value)), entry.place(f"value:{number}"))


class _Walk:
    """One operator, function, predicate, constant or rule."""

    def __init__(self, item: s.Item, outer: Mapping[str, Symbol]) -> None:
        self.item = item
        self.outer = outer
        self.scope = str(item.span)
        self.locals = _local_names(item)
        self.defined: set[str] = set()

    def run(self) -> Iterator[Occurrence]:
        item = self.item
        assert isinstance(item, s.Declaration)
        kind = _KINDS[type(item)]
        name = str(getattr(item, "name", ""))
        yield Occurrence(self.outer.get(name) or Symbol(kind, name), item.place("name"), item)
        if isinstance(item, s.Rewrite | s.Eliminate):
            yield Occurrence(Symbol("ruleset", item.ruleset), item.place("ruleset"))
        if isinstance(item, s.Derive):
            yield self._word("function", item.analysis, item.place("analysis"))
        if isinstance(item, s.Eliminate | s.Keep):
            for one in item.operator.split(OR):
                yield self._word("operator", one, item.place("operator"))
        if isinstance(item, s.Function | s.Predicate):
            for parameter in item.parameters:
                yield self._definition(parameter, item.place(f"parameters:{parameter}"), item)
        for part in fields(item):
            if part.compare:
                yield from self._node(getattr(item, part.name))

    def _node(self, node: object) -> Iterator[Occurrence]:
        if isinstance(node, tuple):
            for part in node:
                yield from self._node(part)
        if not isinstance(node, s.Syntax):
            return
        match node:
            case s.Name(id=name):
                if name != "_":
                    yield self._name(name, node.span)
            case s.Call(function=function):
                yield self._word("function", function, head(node.span, function))
            case s.PatternVariable(name=name):
                if name != "_":
                    yield self._variable(name, node)
            case s.PatternOperator(operator=operator):
                yield from self._operators(operator, node)
            case s.Input() | s.Attribute() | s.Output() | s.Let() | s.RuleLet() | s.Binder() | s.DtypeVariable():
                yield self._definition(node.name, node.place("name"), node)
            case s.EquationSyntax():
                yield self._definition(node.tensor, node.place("name"), node)
        for part in fields(node):
            if part.compare:
                yield from self._node(getattr(node, part.name))

    def _operators(self, names: str, node: s.PatternOperator) -> Iterator[Occurrence]:
        for name in names.split(OR) if names != ROOTS else ():
            yield self._word("operator", name, node.places.get(f"operator:{name}", node.place("name")))

    def _word(self, kind: str, name: str, span: s.Span) -> Occurrence:
        return Occurrence(self.outer.get(name) or Symbol(kind, name), span)

    def _name(self, name: str, span: s.Span) -> Occurrence:
        if name in self.outer:
            return Occurrence(self.outer[name], span)
        if name in self.locals:
            return Occurrence(Symbol("local", name, self.scope), span)
        if isinstance(self.item, s.Rewrite | s.IndexRule | s.Derive) or not name[:1].isupper():
            first = name not in self.defined and not name[:1].isupper()
            self.defined.add(name)
            kind = "constant" if name[:1].isupper() else "local"
            scope = GLOBAL if kind == "constant" else self.scope
            return Occurrence(Symbol(kind, name, scope), span, self.item if first else None)
        return Occurrence(Symbol("constant", name), span)

    def _variable(self, name: str, node: s.Syntax) -> Occurrence:
        if name in self.outer:
            return Occurrence(self.outer[name], node.span)
        if name[:1].isupper():
            return Occurrence(Symbol("constant", name), node.span)
        if name in self.locals:
            return Occurrence(Symbol("local", name, self.scope), node.span)
        first = name not in self.defined
        self.defined.add(name)
        return Occurrence(Symbol("local", name, self.scope), node.span, node if first else None)

    def _definition(self, name: str, span: s.Span, item: s.Syntax) -> Occurrence:
        first = name not in self.defined
        self.defined.add(name)
        return Occurrence(Symbol("local", name, self.scope), span, item if first else None)


_KINDS: dict[type, str] = {
    s.Operator: "operator",
    s.Function: "function",
    s.Predicate: "function",
    s.Analysis: "function",
    s.Constant: "constant",
    s.Rewrite: "rule",
    s.Eliminate: "rule",
    s.IndexRule: "rule",
    s.Derive: "rule",
    s.Keep: "rule",
}


def _local_names(item: s.Item) -> frozenset[str]:
    """The names that an item gives a meaning, its extents and tensors among them."""
    named = {node.name for node in nodes(item) if isinstance(node, s.RuleLet)}
    return bound_in(item) | named | {node.tensor for node in nodes(item) if isinstance(node, s.EquationSyntax)}
