"""What names, functions and tensors mean at a place, and what is wrong with an expression there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.fixes import Fix, advice, any_of, replacement, spelling
from smartmem_rules.language.printing.other_functions import how_called, of_another_language
from smartmem_rules.language.vocabulary import DTYPE_WORDS, VALUE_WORDS, Arity
from smartmem_rules.records import dataclass

REDUCTIONS = frozenset({"sum", "prod", "mean", "any", "all"})
"""Words that reduce; before a plain list of arguments they are no functions."""


@dataclass(frozen=True, slots=True)
class IndexCount:
    """The number of indices of a tensor or of a read; without `exact` it is the least one."""

    count: int
    exact: bool

    def contradicts(self, other: IndexCount) -> bool:
        """Whether no number of indices satisfies both."""
        if self.exact and other.exact:
            return self.count != other.count
        if self.exact:
            return other.count > self.count
        return other.exact and self.count > other.count

    def __str__(self) -> str:
        number = f"{self.count} ind{'ex' if self.count == 1 else 'ices'}"
        return number if self.exact else f"{number} or more"


def index_count(items: Iterable[s.Expression]) -> IndexCount:
    """The number of indices that the items of a shape or of a read stand for."""
    single = [not isinstance(item, s.Splat | s.Broadcast | s.Slice) for item in items]
    return IndexCount(sum(single), all(single))


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that an expression may use.

    `ranks` gives the tensors whose number of indices is known with the span of their declaration;
    `unknown` is the code of the message about a name that is not there, `place` how it speaks of the scope.
    """

    names: frozenset[str]
    functions: Mapping[str, Arity]
    user_functions: Mapping[str, s.Function | s.Predicate | s.Analysis]
    ranks: Mapping[str, tuple[IndexCount, s.Span]] = field(default_factory=dict)
    unknown: Code = Code.UNDEFINED_NAME
    place: str = "defined here"
    has_terms: bool = False
    """Whether it may speak of operators applied to tensors, as guards do."""
    lists: frozenset[str] = frozenset()
    """The names that stand for several indices each, as `i` of `*i` does."""
    extents: frozenset[str] = frozenset()
    """The names of extents and of lists of extents that the shapes of an operator's inputs bind."""

    def with_names(self, names: Iterable[str]) -> Scope:
        """The scope with more names; they hide tensors of the same name."""
        added = frozenset(names)
        ranks = {name: rank for name, rank in self.ranks.items() if name not in added}
        return replace(self, names=self.names | added, ranks=ranks, lists=self.lists - added)

    def with_tensor(self, name: str, rank: IndexCount, span: s.Span) -> Scope:
        """The scope with one more tensor."""
        return replace(self, names=self.names | {name}, ranks={**self.ranks, name: (rank, span)})

    def problems(self, expression: s.Expression) -> Iterator[Diagnostic]:
        """Everything that is wrong with the expression in this scope."""
        if isinstance(expression, s.Name):
            yield from self._name(expression)
        elif isinstance(expression, s.Call):
            yield from self._call(expression)
        elif isinstance(expression, s.Subscript):
            yield from self._subscript(expression)
        elif isinstance(expression, s.Term):
            if not self.has_terms:
                message = "an operator is applied in rules only; here only functions are called"
                fix = advice("write it with functions of elements, such as `max(x[*i], 0)`; rules apply operators")
                yield Diagnostic(Code.MALFORMED, "error", message, expression.span, fix=fix)
        elif isinstance(expression, s.Reduction | s.Comprehension):
            yield from self._bound(expression.binders, (expression.condition, expression.body))
        else:
            for child in children(expression):
                yield from self.problems(child)

    def after(self, binders: Iterable[s.Binder]) -> tuple[Scope, list[Diagnostic]]:
        """The scope inside of the binders, and what is wrong with their bounds."""
        scope, found = self, list[Diagnostic]()
        for binder in binders:
            if binder.bound != s.Name(binder.span, "_"):
                found += scope.problems(binder.bound)
            if binder.kind == "unrolled" and isinstance(binder.bound, s.Name) and binder.bound.id in scope.ranks:
                message = f"`{binder.bound.id}` is a tensor, and an index runs below an extent"
                fix = advice(f"write `{binder.name} < EXTENT` with an extent of `{binder.bound.id}`: `sum(k < K) x[k]`")
                found.append(Diagnostic(Code.NO_EXTENT, "error", message, binder.bound.span, fix=fix))
            scope = scope.with_names([binder.name])
            if binder.kind == "loops":
                scope = replace(scope, lists=scope.lists | {binder.name})
        return scope, found

    def _bound(self, binders: Iterable[s.Binder], inner: Iterable[s.Expression | None]) -> Iterator[Diagnostic]:
        scope, found = self.after(binders)
        yield from found
        for expression in inner:
            if expression is not None:
                yield from scope.problems(expression)

    def _name(self, name: s.Name) -> Iterator[Diagnostic]:
        if name.id in self.names or name.id in DTYPE_WORDS or name.id in VALUE_WORDS:
            return
        message = f"`{name.id}` is not {self.place}"
        alike = (known for known in self.names if known[:1].isupper() == name.id[:1].isupper())
        fix = spelling(name.id, alike, name.span) or self._known_names()
        if name.id.upper() in self.extents:
            extent = name.id.upper()
            fix = advice(
                f"bind the index `{name.id}`: on the left side, or by a reduction, `sum({name.id} < {extent}) ...`"
            )
        if name.id in _CLAUSES:
            fix = advice(
                f"`{name.id}` follows the guards: remove the comma or the `and` before it, or write a guard there"
            )
        if name.id in _VALUES:
            fix = replacement(f"write `{_VALUES[name.id]}`", name.span, _VALUES[name.id])
        yield Diagnostic(self.unknown, "error", message, name.span, fix=fix)

    def _known_names(self) -> Fix:
        """The names that have a meaning here; constants of files are left out."""
        shown = (name for name in self.names if not name.startswith(("@", "*")))
        own = [name for name in shown if name in self.extents or not name[:1].isupper()]
        if own:
            return advice(f"names that have a meaning here: {any_of(own)}")
        return advice(
            "nothing is bound here: write a number, a parameter, or a constant `let NAME = VALUE` of the file"
        )

    def _call(self, call: s.Call) -> Iterator[Diagnostic]:
        user = self.user_functions.get(call.function)
        arity = self.functions.get(call.function)
        if user is not None:
            arity = Arity(len(user.parameters), len(user.parameters))
        if arity is None:
            place = head(call.span, call.function)
            known = [*self.functions, *self.user_functions]
            fix = of_another_language(call, place, known) or spelling(call.function, known, place)
            fix = fix or _undefined(call)
            if call.function in REDUCTIONS:
                fix = advice(f"a reduction names its range: `{call.function}(k < K) x[k]`")
            yield Diagnostic(
                Code.UNDEFINED_FUNCTION,
                "error",
                f"there is no function `{call.function}`",
                place,
                fix=fix,
            )
        else:
            yield from _argument_count(call, arity, user)
        for argument in call.arguments:
            yield from self.problems(argument)

    def _subscript(self, read: s.Subscript) -> Iterator[Diagnostic]:
        for child in children(read):
            yield from self.problems(child)
        if not isinstance(read.base, s.Name) or read.base.id not in self.ranks:
            return
        for item in read.items:
            if isinstance(item, s.Name) and item.id in self.lists:
                message = f"`{item.id}` stands for several indices, one for each axis"
                yield Diagnostic(
                    Code.INDEX_COUNT,
                    "error",
                    message,
                    item.span,
                    fix=replacement(f"write `*{item.id}`", item.span, f"*{item.id}"),
                )
        rank, declared = self.ranks[read.base.id]
        given = index_count(read.items)
        if given.contradicts(rank):
            message = f"`{read.base.id}` has {rank}, but is read with {given}"
            secondary, fix = (
                (declared, "its shape is given here"),
                advice("write one index for each extent of its shape"),
            )
            yield Diagnostic(Code.INDEX_COUNT, "error", message, read.span, secondary=secondary, fix=fix)


_VALUES = {"None": "none", "null": "none", "nil": "none", "True": "true", "False": "false", "NaN": "nan", "Inf": "inf"}
_CLAUSES = frozenset({"explores", "defers", "relaxes", "tags", "cites", "unsound", "where"})


def _undefined(call: s.Call) -> Fix:
    """How a function that nothing is like gets a meaning."""
    parameters = ", ".join(chr(ord("a") + place) for place in range(max(1, min(len(call.arguments), 8))))
    return advice(
        f"define it, `function {call.function}({parameters}) = ...`, or import the file that does; `smartmem reference`"
        " lists all functions"
    )


def head(span: s.Span, word: str) -> s.Span:
    """The place of the word that the text of `span` begins with."""
    return span._replace(end_line=span.line, end_column=span.column + len(word))


def children(node: s.Syntax) -> Iterator[s.Expression]:
    """The expressions directly below a node, in the order of the text."""
    for name in s.branches_of(node):
        value = getattr(node, name)
        for child in value if isinstance(value, tuple) else (value,):
            if isinstance(child, s.Expression):
                yield child


def _argument_count(
    call: s.Call, arity: Arity, user: s.Function | s.Predicate | s.Analysis | None
) -> Iterator[Diagnostic]:
    count = len(call.arguments)
    spread = any(isinstance(argument, s.Splat) for argument in call.arguments)
    # `f(*list)` gives as many arguments as the list has elements.
    if arity.admits(count) or (spread and (arity.most is None or count - 1 <= arity.most)):
        return
    message = f"`{call.function}` takes {arity}, not {count}"
    secondary = (user.place("name"), "it is defined here") if user is not None else None
    shown = f"write `{user.name}({', '.join(user.parameters)})`" if user is not None else f"give it {arity}"
    fix = (how_called(call.function) if user is None else None) or advice(shown)
    yield Diagnostic(Code.ARGUMENT_COUNT, "error", message, call.span, secondary=secondary, fix=fix)
