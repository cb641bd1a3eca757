"""Where a statement that is too long for a line breaks: its tokens as a document of `language.printing.layout`.

A statement is a clause of an operator, a part of a rule, an entry of a block, or what stands before a brace.  It breaks
at its loosest operators first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from smartmem_rules.language.printing import tokens as t
from smartmem_rules.language.printing.layout import Align, Comment, Concat, Document, Fill, Group, Line, Nest, Text
from smartmem_rules.records import dataclass

_SHORT = 24
"""Columns up to which an argument stands on a line together with others."""
_CLAUSE_INDENT = 8
"""Columns by which the further lines of an operator's clause are indented."""
_INDENT = 4
_REDUCTIONS = frozenset(["sum", "max", "min", "prod", "mean", "any", "all", "first"])
_SUMS = frozenset("+-")
_LOOSEST_FIRST = (
    frozenset(["or"]),
    frozenset(["and"]),
    t.COMPARISONS,
    _SUMS,
    frozenset(["*", "/", "//", "%"]),
)
_WORDS_OF_HEAD = {"rewrite": 4, "eliminate": 4, "index": 2, "derive": 2, "keep": 2}
"""How many words stand before the equation of a rule."""
_LEADS = t.ITEMS | t.BLOCKS | t.CLAUSES | t.RULE_CLAUSES
_INNER_WORDS = frozenset(["if", "then", "else", "and", "or", "not", "in", "for", "after"])


@dataclass(frozen=True)
class Piece:
    """A token with the space before it and the comments around it."""

    text: str
    kind: str
    gap: str
    above: tuple[str, ...] = ()
    """Comments on lines of their own before the token."""
    behind: tuple[str, ...] = ()
    """Comments behind the token: the first one on its line, the others on lines of their own."""

    def document(self) -> Document:
        """The token with its comments, without the space before it."""
        above = [Comment(text, alone=True) for text in self.above]
        behind = [Comment(text, alone=place > 0) for place, text in enumerate(self.behind)]
        return Concat((*above, Text(self.text), *behind)) if above or behind else Text(self.text)

    def without_end(self) -> Piece:
        """The token without the comments behind it."""
        return replace(self, behind=())


@dataclass(frozen=True)
class _Bracket:
    """A bracket and what stands in it."""

    opening: Piece
    inner: tuple[_Node, ...]
    closing: Piece | None

    @property
    def text(self) -> str:
        return self.opening.text

    @property
    def kind(self) -> str:
        return "bracket"

    @property
    def gap(self) -> str:
        return self.opening.gap

    @property
    def behind(self) -> tuple[str, ...]:
        return self.closing.behind if self.closing is not None else ()

    def without_end(self) -> _Bracket:
        return self if self.closing is None else replace(self, closing=self.closing.without_end())


_Node = Piece | _Bracket
_Nodes = Sequence[_Node]


@dataclass(frozen=True)
class Statement:
    """Tokens that are laid out together."""

    nodes: tuple[_Node, ...]

    @property
    def opens(self) -> str:
        """What the brace at its end belongs to: "block", "operator" or "family"; empty without one."""
        if self.nodes[-1].text != "{":
            return ""
        first = self.nodes[0].text
        return "block" if first in t.BLOCKS else "family" if first == "for" else "operator"

    @property
    def closes(self) -> bool:
        """Whether it begins with the brace that ends an item."""
        return self.nodes[0].text == "}"

    @property
    def names_rule(self) -> bool:
        """Whether it is the line of a rule with its name."""
        return self.nodes[0].text in t.RULES

    @property
    def head(self) -> int:
        """How many of its tokens stand on the line with the item's name however long it is; 0 for what is no item."""
        if self.opens == "block" or self.names_rule:
            return _count(self.nodes)
        if self.nodes[0].text in ("predicate", "let"):
            return next(
                (_count(self.nodes[: place + 1]) for place, node in enumerate(self.nodes) if node.text == "="), 0
            )
        return 0

    def document(self, place: str) -> Document:
        """The statement with its possible line breaks; `place` says what it stands in: "block", "operator" or ""."""
        last, end = self.nodes[-1], self.nodes[-1].behind
        if not end or self.nodes[0].text in ("predicate", "let"):
            return _statement(self.nodes, place)
        # the comment at the end breaks nothing
        comments = [Comment(text, alone=number > 0) for number, text in enumerate(end)]
        return Concat((_statement([*self.nodes[:-1], last.without_end()], place), *comments))


def statements(pieces: Sequence[Piece], place: str) -> list[Statement]:
    """The statements of a text without comments between them; `place` as for `Statement.document`."""
    found: list[list[_Node]] = []
    entries = place == "block"
    nodes, _ = _nested(pieces, 0)
    for position, node in enumerate(nodes):
        if not found or _begins(nodes, position, found[-1], entries):
            found.append([])
        found[-1].append(node)
        if node.text == "{":
            entries = found[-1][0].text in t.BLOCKS
        elif node.text == "}":
            entries = False
    return [Statement(tuple(part)) for part in found]


def _nested(pieces: Sequence[Piece], begin: int, closing: str = "") -> tuple[list[_Node], int]:
    """Pieces with their brackets, up to the closing one, and the position of that."""
    nodes: list[_Node] = []
    position = begin
    while position < len(pieces):
        piece = pieces[position]
        if closing and piece.text == closing:
            break
        if piece.text in t.OPEN:
            inner, position = _nested(pieces, position + 1, ")" if piece.text == "(" else "]")
            nodes.append(_Bracket(piece, tuple(inner), pieces[position] if position < len(pieces) else None))
        else:
            nodes.append(piece)
        position += 1
    return nodes, position


def _begins(nodes: _Nodes, position: int, current: _Nodes, entries: bool) -> bool:
    """Whether a node begins a statement behind the current one."""
    before, node = nodes[position - 1], nodes[position]
    if before.text in ("{", "}", ";") or node.text == "}":
        return True
    if entries:
        return False
    if len(current) == _WORDS_OF_HEAD.get(current[0].text):
        return True
    if node.kind == "clause":
        return True
    if node.kind != "word" or node.text in _INNER_WORDS or not _ends_operand(nodes, position):
        return False
    return len(current) > 1 or before.text not in _LEADS


def _ends_operand(nodes: _Nodes, position: int) -> bool:
    """Whether an operand ends before the node, so that a sign there stands between two operands."""
    if position == 0:
        return False
    before = nodes[position - 1]
    if isinstance(before, _Bracket):
        return not _follows_loops(nodes, position)
    return before.kind != "symbol" and before.text not in t.KEYWORDS


def _follows_loops(nodes: _Nodes, position: int) -> bool:
    """Whether the node follows the loops of a reduction, as `x` in `sum(k < K) x[k]`."""
    loops = nodes[position - 1]
    if position < 2 or nodes[position - 2].text not in _REDUCTIONS or not isinstance(loops, _Bracket):
        return False
    words = [node.text for node in loops.inner[:3] if node.text != "*"]
    return len(words) > 1 and words[1] in ("<", "in")


# --- statements --------------------------------------------------------------------------------------


def _statement(nodes: _Nodes, place: str) -> Document:
    first = nodes[0].text
    indent = _CLAUSE_INDENT if place == "operator" else _INDENT
    if place == "block":
        words = _parts(nodes, None, lambda nodes, position: nodes[position].gap != "")
        return Nest(_INDENT, Fill(tuple(map(_operand, words))))
    if first == "operator":
        return _signature(nodes)
    if first == "for":
        return Nest(2 * _INDENT, Fill(_listed(nodes)))
    if first in t.RULE_CLAUSES and len(nodes) > 1:
        return Concat((_operand(nodes[:1]), Text(" "), Align(Fill(_listed(nodes[1:])))))
    if first == "require" and len(nodes) > 1:
        return Nest(indent, _operated(nodes))
    for position, node in enumerate(nodes[1:-1], 1):
        if node.text in t.ARROWS:
            left, right = _expression(nodes[:position]), _operated(nodes[position:])
            return Group(Concat((left, Line(), right)))
        if node.text == "=":
            body = Nest(indent, Concat((Line(), _expression(nodes[position + 1 :]))))
            return Group(Concat((_operand(nodes[: position + 1]), body)))
    return Nest(indent, _expression(nodes))


def _listed(nodes: _Nodes) -> tuple[Document, ...]:
    """The items of a list, each with the comma behind it."""
    return tuple(_item(part) for part in _parts(nodes, (",",), behind=True))


def _parts(
    nodes: _Nodes,
    words: Collection[str] | None,
    cuts: Callable[[_Nodes, int], bool] = lambda nodes, position: True,
    *,
    behind: bool = False,
) -> Iterator[_Nodes]:
    """The nodes cut before each of the words, or behind it, where `cuts` agrees; None stands for all words."""
    start = 0
    for position in range(1, len(nodes)):
        word = nodes[position - 1 if behind else position].text
        if (words is None or word in words) and cuts(nodes, position):
            yield nodes[start:position]
            start = position
    if nodes:
        yield nodes[start:]


def _signature(nodes: _Nodes) -> Document:
    """`operator Name<...>(inputs; attributes) -> outputs {`."""
    position = next((position for position, node in enumerate(nodes) if node.text == "("), 0)
    bracket = nodes[position]
    if not isinstance(bracket, _Bracket) or [node.text for node in nodes[position + 1 : position + 2]] != ["->"]:
        return Nest(_CLAUSE_INDENT, _operand(nodes))
    kinds = [Fill(_listed(kind)) for kind in _parts(bracket.inner, (";",), behind=True)]
    parameters = Concat(tuple(part for kind in kinds for part in (Line(), kind))[1:])
    head = (_operand(nodes[:position]), bracket.opening.document(), Group(Line("")), parameters, _closing(bracket))
    arrow, outputs = nodes[position + 1 : position + 2], nodes[position + 2 :]
    results = (Line(), _operand(arrow), Text(" "), Align(Fill(_listed(outputs))))
    return Group(Nest(_CLAUSE_INDENT, Concat((*head, *results))))


# --- expressions -------------------------------------------------------------------------------------


def _item(nodes: _Nodes) -> Document:
    """An argument, attribute, guard or member of a list, with the comma or semicolon behind it."""
    if len(nodes) > 1 and nodes[-1].text in (",", ";"):
        return Concat((_item(nodes[:-1]), _operand(nodes[-1:])))
    for position, node in enumerate(nodes[1:-1], 1):
        if node.text == "=":
            value = nodes[position + 1 :]
            return Concat((_operand(nodes[: position + 1]), Text(value[0].gap), Nest(_INDENT, _expression(value))))
        if node.text == "for":
            clauses = _parts(nodes[position:], ("for", "if"))
            return Fill((_expression(nodes[:position]), *map(_operated, clauses)))
    return _expression(nodes)


def _expression(nodes: _Nodes) -> Document:
    if nodes[0].text == "if":
        return _conditional(nodes)
    for operators in _LOOSEST_FIRST:
        parts = list(_parts(nodes, operators, _ends_operand))
        if len(parts) > 1:
            return Fill((_expression(parts[0]), *map(_operated, parts[1:])))
        if operators is _SUMS:
            reduction = next((position for position in range(2, len(nodes)) if _follows_loops(nodes, position)), 0)
            if reduction:
                return _reduction(nodes[:reduction], nodes[reduction:])
    return _operand(nodes)


def _reduction(head: _Nodes, body: _Nodes) -> Document:
    """`sum(k < K)` and what it adds up, which takes all factors behind it."""
    return Group(Concat((_operand(head), Nest(_INDENT, Concat((Line(body[0].gap), _expression(body)))))))


def _operated(nodes: _Nodes) -> Document:
    """An operator, or a word like `then`, and the expression behind it."""
    if len(nodes) == 1:
        return _operand(nodes)
    return Concat((_operand(nodes[:1]), Text(nodes[1].gap), _expression(nodes[1:])))


def _conditional(nodes: _Nodes) -> Document:
    """`if c then a else if d then b else e`: a line for each branch where one line does not hold all of them."""
    branches: list[Document] = []
    lead: list[Document] = []
    while nodes[0].text == "if":
        then, otherwise = _branch_ends(nodes)
        if otherwise is None:
            break
        value = Nest(_INDENT, Concat((Line(), Nest(_INDENT, _operated(nodes[then:otherwise])))))
        branches.append(Group(Concat((*lead, _operated(nodes[:then]), value))))
        lead = [_operand(nodes[otherwise : otherwise + 1]), Text(" ")]
        nodes = nodes[otherwise + 1 :]
    last = _operand(nodes) if nodes[0].text == "if" else _expression(nodes)
    branches.append(Nest(_INDENT, Concat((*lead, last))))
    return Group(Concat(tuple(part for branch in branches for part in (Line(), branch))[1:]))


def _branch_ends(nodes: _Nodes) -> tuple[int, int | None]:
    """The positions of the `then` and of the `else` of the conditional at the beginning; None where they are missing.

    A nested conditional takes the `else` that is nearest to it, as in the grammar.
    """
    then, open_conditionals = 0, 0
    for position, node in enumerate(nodes[1:-1], 1):
        if node.text == "if":
            open_conditionals += 1
        elif node.text == "then" and not open_conditionals and not then:
            then = position
        elif node.text == "else" and open_conditionals:
            open_conditionals -= 1
        elif node.text == "else" and then:
            return then, position
    return then, None


def _operand(nodes: _Nodes) -> Document:
    """What no operator cuts: it breaks only inside of its brackets."""
    parts: list[Document] = []
    for position, node in enumerate(nodes):
        if position:
            parts.append(Text(node.gap))
        if isinstance(node, _Bracket):
            called = position > 0 and not node.gap and nodes[position - 1].text not in t.BINARY
            parts.append(_bracket(node, called))
        else:
            parts.append(node.document())
    return Concat(tuple(parts))


def _bracket(bracket: _Bracket, called: bool) -> Document:
    opening, closing = bracket.opening.document(), _closing(bracket)
    parts = list(_parts(bracket.inner, (",", ";"), behind=True))
    if not parts:
        return Concat((opening, closing))
    items = [_item(part) for part in parts]
    if called and len(items) == 1 and isinstance(items[0], Concat):
        return Concat((opening, items[0], closing))
    if not called or all(_columns(part) <= _SHORT for part in parts):
        return Concat((opening, Align(Fill(tuple(items))), closing))
    lines = Concat((Line(""), *[part for item in items for part in (Line(), item)][1:]))
    return Group(Concat((opening, Nest(_INDENT, lines), closing)))


def _closing(bracket: _Bracket) -> Document:
    return Concat(()) if bracket.closing is None else bracket.closing.document()


def _count(nodes: _Nodes) -> int:
    """How many tokens they are."""
    brackets = [node for node in nodes if isinstance(node, _Bracket)]
    return len(nodes) + sum(_count(node.inner) + (node.closing is not None) for node in brackets)


def _columns(nodes: _Nodes) -> int:
    """How many columns syntax nodes take when all of them stand on one line."""
    width = 0
    for node in nodes:
        width += len(node.gap) + len(node.text)
        if isinstance(node, _Bracket):
            width += _columns(node.inner) + 1
    return width
