"""What names, functions and tensors mean at a place, and what is wrong with an expression there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.fixes import Edit, Fix, advice, any_of, edit, replacement, spelling
from smartmem_rules.language.printing.other_functions import of_another_language
from smartmem_rules.language.vocabulary import (
    DTYPE_WORDS,
    VALUE_WORDS,
    Arity,
)
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.checks.fitting_names import (
    comment_meant,
    fitting,
    function_elsewhere,
    undefined_function,
)
from smartmem_rules.rulebase.checks.meant.arguments import check_arguments
from smartmem_rules.rulebase.checks.meant.dtypes import bare_dtype, with_dtype_of_cast
from smartmem_rules.rulebase.checks.meant.lengths.new_axes import new_axes
from smartmem_rules.rulebase.checks.meant.names import VALUES_ELSEWHERE, hidden_name, index_meant
from smartmem_rules.rulebase.checks.meant.predicates import own_predicate

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
    in_value: bool = False
    """Whether the place is part of a comparison or of arithmetic, where no truth stands."""
    lists: frozenset[str] = frozenset()
    """The names that stand for several indices each, as `i` of `*i` does."""
    ended: Mapping[str, str] = field(default_factory=dict)
    """The indices of reductions to the left, which end before the operator that is given."""
    texts: frozenset[str] = frozenset()
    """The names of attributes that are texts."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Attributes that could be bound, but are not, with the operators of the left side that have them."""
    bound_as: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Attributes that the left side binds, with the names that it binds them by."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """What the names are, as far as that is known: `number`, `text`, `tensor`."""
    wanted: Mapping[s.Span, str] = field(default_factory=dict)
    """What names have to be at some places."""
    extents: frozenset[str] = frozenset()
    """The names of extents and of lists of extents that the shapes of an operator's inputs bind."""

    bounds: Mapping[str, str] = field(default_factory=dict)
    """The indices, with the names that they run below, if these are names."""

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
            yield from (with_dtype_of_cast(one, expression) for one in self._call(expression))
        elif isinstance(expression, s.Subscript):
            yield from self._subscript(expression)
        elif isinstance(expression, s.Term):
            if not self.has_terms:
                message = "an operator is applied in rules only; here only functions are called"
                fix = advice("write it with functions of elements, such as `max(x[*i], 0)`; rules apply operators")
                yield Diagnostic(Code.MALFORMED, "error", message, expression.span, fix=fix)
        elif isinstance(expression, s.Reduction | s.Comprehension):
            yield from self._bound(expression.binders, (expression.condition, expression.body))
        elif isinstance(expression, s.Binary):
            wrong = self._absent(expression) or self._bare_text(expression)
            if wrong is not None:
                yield wrong
                return
            if expression.operator not in ("and", "or") and not self.in_value:
                yield from replace(self, in_value=True).problems(expression)
                return
            yield from self.problems(expression.left)
            ended = {binder.name: expression.operator for binder in _last_binders(expression.left)}
            scope = replace(self, ended={**self.ended, **ended}) if ended else self
            for one in scope.problems(expression.right):
                yield comment_meant(one, expression) or one
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
            found += hidden_name(binder, {*scope.bounds, *scope.kinds, *scope.extents}, scope.names)
            scope = scope.with_names([binder.name])
            below = binder.bound.id if isinstance(binder.bound, s.Name) else ""
            scope = replace(scope, bounds={**scope.bounds, binder.name: below})
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
        wanted = self.wanted.get(name.span)
        meant = fitting(name.id, name.span, wanted, self.names, self.kinds) if wanted is not None else None
        meant = self._in_other_case(name) or spelling(name.id, alike, name.span) or meant or bare_dtype(name)
        fix = meant or self._known_names(name.id)
        fix = index_meant(name, self.extents, self.bounds) or fix
        if name.id in self.attributes:
            operator = self.attributes[name.id]
            fix = advice(f"bind the attribute on the left: `{operator}(...; {name.id} = {name.id})`")
        bound = self.bound_as.get(name.id, ())
        if bound:
            message = f"the left side binds the attribute `{name.id}` as `{'` and as `'.join(bound)}`"
            one = replacement(f"write `{bound[0]}`", name.span, bound[0])
            fix = one if len(bound) == 1 else advice(f"write `{'` or `'.join(bound)}`")
        if name.id in self.ended:
            sign = self.ended[name.id]
            fix = advice(
                f"the reduction over `{name.id}` ends before `{sign}`: put parentheses around all that it adds up, "
                f"`sum({name.id} < ...) (... {sign} ...)`, or write another index"
            )
        if name.id in _CLAUSES:
            fix = advice(
                f"`{name.id}` follows the guards: remove the comma or the `and` before it, or write a guard there"
            )
        if name.id in VALUES_ELSEWHERE:
            fix = replacement(f"write `{VALUES_ELSEWHERE[name.id]}`", name.span, VALUES_ELSEWHERE[name.id])
        yield Diagnostic(self.unknown, "error", message, name.span, fix=fix)

    def _in_other_case(self, name: s.Name) -> Fix | None:
        """The only name that differs in capital letters alone; indices and extents come in pairs that do."""
        same = [one for one in self.names if one.lower() == name.id.lower() and one not in self.bounds]
        if len(same) != 1 or same[0] in self.extents:
            return None
        return edit(f"did you mean `{same[0]}`?", Edit(name.span, same[0], name.id))

    def _known_names(self, unknown: str) -> Fix:
        """The names that have a meaning here; constants of files are left out."""
        shown = (name for name in self.names if not name.startswith(("@", "*")))
        own = [name for name in shown if name in self.extents or not name[:1].isupper()]
        if own:
            text = f'; a text stands in quotes, `"{unknown}"`' if self.texts else ""
            return advice(f"names that have a meaning here: {any_of(own)}{text}")
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
            own = [one.name for one in self.user_functions.values() if one.span.file == call.span.file]
            fix = (
                self._read(call)
                or function_elsewhere(call)
                or spelling(call.function, own, place)
                or of_another_language(call, place, known)
                or spelling(call.function, self._taking(len(call.arguments)), place)
                or undefined_function(call, self.has_terms)
            )
            if self.has_terms and not self.in_value:
                fix = own_predicate(call, self.user_functions, self.kinds, fix) or fix
            if call.function in REDUCTIONS:
                fix = advice(f"a reduction names its range: `{call.function}(k < K) x[k]`")
                if self.has_terms:
                    shown = f"`{call.function}(*i < shape(c)) (c[*i] == 1)`"
                    fix = advice(f"a loop over the elements of a constant names its range: {shown}")
            yield Diagnostic(
                Code.UNDEFINED_FUNCTION,
                "error",
                f"there is no function `{call.function}`",
                place,
                fix=fix,
            )
        else:
            yield from check_arguments(call, arity, user, self.kinds, self.names)
        for argument in call.arguments:
            yield from self.problems(argument)

    def _taking(self, count: int) -> list[str]:
        """The functions that take so many arguments."""
        own = (name for name, one in self.user_functions.items() if len(one.parameters) == count)
        return [*(name for name, arity in self.functions.items() if arity.admits(count)), *own]

    def _absent(self, compared: s.Binary) -> Diagnostic | None:
        """A tensor that is compared with `none`."""
        if compared.operator not in ("==", "!="):
            return None
        for one, other in ((compared.left, compared.right), (compared.right, compared.left)):
            if isinstance(one, s.Name) and isinstance(other, s.Name) and one.id in self.ranks:
                if other.id not in ("none", "None", "null", "nil"):
                    continue
                said = f"present({one.id})" if compared.operator == "!=" else f"not present({one.id})"
                message = f"`{one.id}` is a tensor, which has no value to compare"
                fix = replacement(f"write `{said}`", compared.span, said)
                return Diagnostic(Code.NO_CONDITION, "error", message, compared.span, fix=fix)
        return None

    def _bare_text(self, compared: s.Binary) -> Diagnostic | None:
        """A text without quotation marks that an attribute is compared with."""
        texts = self.texts or {name for name, kind in self.kinds.items() if kind == "text"}
        if compared.operator not in ("==", "!=") or (not self.texts and len(texts) != 1):
            return None  # among several texts a rule may mean one of them
        for one, other in ((compared.left, compared.right), (compared.right, compared.left)):
            if not isinstance(one, s.Name) or one.id not in texts or not isinstance(other, s.Name):
                continue
            if other.id not in self.names and other.id not in VALUE_WORDS:
                message = f"`{one.id}` is a text, which stands in quotes; `{other.id}` is not defined here"
                fix = replacement(f'write `"{other.id}"`', other.span, f'"{other.id}"')
                return Diagnostic(self.unknown, "error", message, other.span, fix=fix)
        return None

    def _read(self, call: s.Call) -> Fix | None:
        """The call of a tensor, as if it were a function."""
        if call.function not in self.ranks or call.span.line != call.span.end_line:
            return None
        begin = call.span.column + len(call.function)
        opening = call.span._replace(column=begin, end_column=begin + 1)
        closing = call.span._replace(column=call.span.end_column - 1)
        edits = Edit(opening, "[", "("), Edit(closing, "]", ")")
        return edit(f"`{call.function}` is a tensor: its indices stand in square brackets", *edits)

    def _subscript(self, read: s.Subscript) -> Iterator[Diagnostic]:
        found = list(new_axes(read, self.ranks, self.names)) or [
            one for child in children(read) for one in self.problems(child)
        ]
        if _reads_row(read, self.ranks):
            yield _indices_apart(read)
            return
        yield from found
        if found or not isinstance(read.base, s.Name) or read.base.id not in self.ranks:
            return
        for item in read.items:
            if isinstance(item, s.Slice):
                message = f"`{read.base.id}` is a tensor: an equation reads one element of it, not a part"
                fix = self._indices(read, read.base.id)
                yield Diagnostic(Code.INDEX_COUNT, "error", message, read.span, fix=fix)
                return
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

    def _indices(self, read: s.Subscript, name: str) -> Fix:
        """What to write for a part of a tensor: as many indices as it has axes."""
        rank, _ = self.ranks[name]
        if any(isinstance(item, s.Slice) and (item.low or item.high) for item in read.items):
            return advice(f"write the index: `{name}[i + 1]` with one for each axis")
        if rank.exact:
            indices = ", ".join("ijklmnop"[: rank.count])
            return advice(f"write one index for each axis: `{name}[{indices}]`")
        if rank.count:
            return advice(f"write its indices, those of a list of axes with a star: `{name}[*i, k]`")
        lists = sorted(self.lists) or ["i"]
        new = f"{name}[*{lists[0]}]"
        text = f"write its indices, which are a list: `{new}`"
        certain = len(self.lists) == 1 and len(read.items) == 1 and read.default is None
        return replacement(text, read.span, new) if certain else advice(text)


def _last_binders(expression: s.Expression) -> tuple[s.Binder, ...]:
    """The indices of the reduction that an expression ends with."""
    while isinstance(expression, s.Binary | s.Unary):
        expression = expression.right if isinstance(expression, s.Binary) else expression.operand
    return expression.binders if isinstance(expression, s.Reduction) else ()


def _reads_row(read: s.Subscript, tensors: Mapping[str, object]) -> bool:
    """Whether a read is one of what a read gives, as `x[n][k]`."""
    inner = read.base
    if not isinstance(inner, s.Subscript) or any(isinstance(item, s.Slice) for item in inner.items):
        return False
    return isinstance(inner.base, s.Name) and inner.base.id in tensors


def _indices_apart(read: s.Subscript) -> Diagnostic:
    inner = read.base
    between = inner.span._replace(line=inner.span.end_line, column=inner.span.end_column - 1)
    between = between._replace(end_column=between.column + 2)
    fix = edit("all indices stand in one pair of brackets: `x[n, k]`", Edit(between, ", ", "]["))
    message = "an element of a tensor has no elements of its own"
    return Diagnostic(Code.INDEX_COUNT, "error", message, read.span, fix=fix)


_CLAUSES = frozenset({"explores", "defers", "relaxes", "tags", "cites", "unsound", "where"})


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
