"""From lark's reductions to the syntax tree: one method per rule or alias of `grammar/smr.lark`."""

from __future__ import annotations

import re

from lark import Token

from smartmem_rules.language import syntax as s
from smartmem_rules.language.expression_builder import (
    Children,
    ExpressionBuilder,
    begin_of,
    end_of,
    names_of,
    nodes_of,
    number_of,
    tokens_of,
    unquote,
)

_COMMENT = re.compile(r'(?:[^"#]|"(?:[^"\\]|\\.)*")*#+(.*)')
_GIVEN_BY_SIGNATURE = "_"


def _has(children: Children, word: str) -> bool:
    return any(isinstance(child, Token) and child == word for child in children)


def _group(children: Children, word: str) -> Children:
    """The children of the sub-rule that begins with the keyword `word`; empty when it is absent."""
    for child in children:
        if isinstance(child, list) and child and child[0] == word:
            return child
    return []


class Builder(ExpressionBuilder):
    """Builds the items of one file after the other."""

    def _comment(self, children: Children) -> str:
        match = _COMMENT.match(self._lines[children[1].line - 1])
        return match[1].strip() if match else ""

    def start(self, children: Children) -> s.Module:
        lines = self._lines
        span = s.Span(self._file, 1, 1, len(lines), len(lines[-1]) + 1)
        return s.Module(span, tuple(children), self._source)

    def import_item(self, children: Children) -> s.Import:
        return s.Import(self._span(children), unquote(children[1]))

    def function(self, children: Children) -> s.Function:
        name, *parameters = names_of(children)
        return s.Function(self._span(children), name, tuple(parameters), children[-1])

    # --- operators -----------------------------------------------------------------------------------

    def operator(self, children: Children) -> s.Operator:
        inputs = [child for group in nodes_of(children, list) for child in nodes_of(group, s.Input)]
        attributes = [child for group in nodes_of(children, list) for child in nodes_of(group, s.Attribute)]
        outputs = [child for group in nodes_of(children, list) for child in nodes_of(group, s.Output)]
        dtypes = [child for group in nodes_of(children, list) for child in nodes_of(group, s.DtypeVariable)]
        name = str(children[1])
        self._refuse_repeated_clauses(children)
        internal = bool(_group(children, "internal"))
        onnx = next(iter(nodes_of(children, s.OnnxBinding)), None)
        if onnx is None and not internal:
            onnx = s.OnnxBinding(self._span([children[1]]), "ai.onnx", name, 1, None)
        return s.Operator(
            span=self._span(children),
            name=name,
            dtypes=tuple(dtypes),
            inputs=tuple(inputs),
            attributes=tuple(attributes),
            outputs=tuple(outputs),
            commutative=bool(_group(children, "commutative")),
            internal=internal,
            onnx=onnx,
            requires=tuple(group[1] for group in nodes_of(children, list) if group and group[0] == "require"),
            lets=nodes_of(children, s.Let),
            equations=nodes_of(children, s.EquationSyntax),
            declared_class=".".join(names_of(_group(children, "class"))) or None,
            declared_mapping=".".join(names_of(_group(children, "mapping"))) or None,
        )

    def _refuse_repeated_clauses(self, children: Children) -> None:
        seen: set[str] = set()
        for child in children:
            word = "onnx" if isinstance(child, s.OnnxBinding) else child[0] if isinstance(child, list) and child else ""
            if word not in ("onnx", "internal", "commutative", "class", "mapping"):
                continue
            if word in seen:
                span = child.span if isinstance(child, s.OnnxBinding) else self._span(child)
                self._problem(span, f"an operator has one `{word}` clause at most", "remove this one")
            seen.add(str(word))

    def dtype_variables(self, children: Children) -> Children:
        return children

    inputs = attributes = outputs = flag = require = class_clause = mapping_clause = dtype_variables
    where = relaxes = unsound = operands = pattern_attributes = row = index_list = subscript = dtype_variables

    def dtype_variable(self, children: Children) -> s.DtypeVariable:
        name, *classes = names_of(children)
        return s.DtypeVariable(self._span(children), name, tuple(classes))

    def tensor_input(self, children: Children) -> s.Input:
        kind = nodes_of(children, s.TensorType)[0]
        return s.Input(self._span(children), str(children[0]), kind, None, _has(children, "?"), False, None)

    def variadic_input(self, children: Children) -> s.Input:
        return s.Input(self._span(children), str(children[0]), children[-1], None, False, True, None)

    def constant_input(self, children: Children) -> s.Input:
        default = next(iter(nodes_of(children, s.Expression)), None)
        name, kind = str(children[1]), str(children[3])
        return s.Input(self._span(children), name, None, kind, _has(children, "?"), False, default)

    def attribute(self, children: Children) -> s.Attribute:
        default = next(iter(nodes_of(children, s.Expression)), None)
        required = default is None
        if isinstance(default, s.Name) and default.id == "none":
            default = None
        return s.Attribute(self._span(children), str(children[0]), str(children[2]), default, required)

    def output(self, children: Children) -> s.Output:
        name, *index = names_of(children)
        return s.Output(self._span(children), name, children[-1], index[0] if index else None)

    def tensor_type(self, children: Children) -> s.TensorType:
        return s.TensorType(self._span(children), str(children[0]), nodes_of(children, s.Expression))

    def onnx(self, children: Children) -> s.OnnxBinding:
        domain, name = children[1].split("::")
        versions = [int(token) for token in tokens_of(children, "INT")]
        since = versions[0] if versions else 1
        return s.OnnxBinding(self._span(children), domain, name, since, versions[1] if len(versions) > 1 else None)

    def let(self, children: Children) -> s.Let:
        return s.Let(self._span(children), str(children[1]), children[-1])

    def equation(self, children: Children) -> s.EquationSyntax:
        groups = [nodes_of(group, s.Binder) for group in nodes_of(children, list)]
        member = self._member(children) if len(groups) == 2 else None
        return s.EquationSyntax(
            self._span(children), names_of(children)[0], member, groups[-1], children[-1], _has(children[:1], "view")
        )

    def _member(self, children: Children) -> str:
        group = nodes_of(children, list)[0]
        binders = nodes_of(group, s.Binder)
        plain = len(binders) == 1 and binders[0].kind == "loop" and isinstance(binders[0].bound, s.Name)
        if not plain or binders[0].bound != s.Name(binders[0].span, _GIVEN_BY_SIGNATURE):
            self._problem(
                self._span(group), "the number of a variadic output is one plain name", "write `ys[j][...] = ...`"
            )
            return _GIVEN_BY_SIGNATURE
        return binders[0].name

    def index(self, children: Children) -> s.Binder:
        return self._index("loop", children)

    def indices(self, children: Children) -> s.Binder:
        return self._index("loops", children)

    def _index(self, kind: str, children: Children) -> s.Binder:
        span = self._span(children)
        bound = next(iter(nodes_of(children, s.Expression)), s.Name(span, _GIVEN_BY_SIGNATURE))
        return s.Binder(span, names_of(children)[0], kind, bound)

    # --- rules ---------------------------------------------------------------------------------------

    def rewrite(self, children: Children) -> s.Rewrite:
        name, ruleset = names_of(children)
        left, right = nodes_of(children, s.Pattern)
        unsound = _group(children, "unsound")
        return s.Rewrite(
            span=self._span(children),
            name=name,
            ruleset=ruleset,
            left=left,
            right=right,
            bidirectional=_has(children, "<=>"),
            guards=nodes_of(_group(children, "where"), s.Expression),
            relaxes=tuple(names_of(_group(children, "relaxes"))),
            unsound=unquote(unsound[1]) if unsound else None,
            comment=self._comment(children),
        )

    def eliminate(self, children: Children) -> s.Eliminate:
        name, ruleset, operator = names_of(children)
        guards = nodes_of(_group(children, "where"), s.Expression)
        return s.Eliminate(self._span(children), name, ruleset, operator, guards, self._comment(children))

    def index_rule(self, children: Children) -> s.IndexRule:
        left, right = nodes_of(children, s.Expression)
        guards = nodes_of(_group(children, "where"), s.Expression)
        return s.IndexRule(self._span(children), str(children[1]), left, right, guards, self._comment(children))

    def pattern_variable(self, children: Children) -> s.PatternVariable:
        return s.PatternVariable(self._span(children), str(children[0]))

    def pattern_number(self, children: Children) -> s.PatternNumber:
        value = number_of(children[-1])
        return s.PatternNumber(self._span(children), -value if len(children) == 2 else value)

    def pattern_variadic(self, children: Children) -> Token:
        return Token("VARIADIC", str(children[1]), 0, *begin_of(children[0]), *end_of(children[1]))

    def pattern_bundle(self, children: Children) -> Token:
        return Token("BUNDLE", str(children[1]), 0, *begin_of(children[0]), *end_of(children[1]))

    def pattern_attribute(self, children: Children) -> s.PatternAttribute:
        return s.PatternAttribute(self._span(children), str(children[0]), children[-1])

    def pattern_operator(self, children: Children) -> s.PatternOperator:
        everything = [child for group in nodes_of(children, list) for child in group]
        output = tokens_of(children, "INT")
        return s.PatternOperator(
            span=self._span(children),
            operator=str(children[0]),
            arguments=nodes_of(everything, s.Pattern),
            attributes=nodes_of(everything, s.PatternAttribute),
            bundle=self._bundle(everything),
            variadic=self._variadic(everything),
            output=int(output[0]) if output else None,
        )

    def _bundle(self, children: Children) -> str | None:
        bundles = tokens_of(children, "BUNDLE")
        for extra in bundles[1:]:
            self._problem(self._span([extra]), "an operator has one `@` bundle of attributes at most")
        return str(bundles[0]) if bundles else None

    def _variadic(self, children: Children) -> str | None:
        operands = [
            child for child in children if isinstance(child, s.Pattern) or child in tokens_of(children, "VARIADIC")
        ]
        for operand in operands[:-1]:
            if isinstance(operand, Token):
                self._problem(
                    self._span([operand]), f"`*{operand}` stands for all further operands and must be the last"
                )
        last = operands[-1] if operands else None
        return str(last) if isinstance(last, Token) else None

    def table(self, children: Children) -> s.Table:
        header, *body = nodes_of(children, list)
        columns = tuple(str(cell) for cell in header)
        cells: dict[tuple[str, str], tuple[str, ...]] = {}
        for row in body:
            for column, cell in zip(columns, row[1:], strict=False):
                cells.setdefault((str(row[0]), column), tuple(cell.split("/")))
            if len(row) - 1 > len(columns):
                extra = row[len(columns) + 1 :]
                self._problem(self._span(extra), f"row `{row[0]}` has more cells than the {len(columns)} columns")
        rows = tuple(str(row[0]) for row in body)
        return s.Table(self._span(children), str(children[1]), rows, columns, cells)

    def block(self, children: Children) -> s.Block:
        names = names_of(children)
        subject = names[1] if len(names) > 1 else None
        entries = nodes_of(children, s.Entry)
        return s.Block(self._span(children), str(children[0]), names[0], subject, entries, self._comment(children))

    def entry(self, children: Children) -> s.Entry:
        values = tuple(self._value(token) for token in children[1:-1])
        return s.Entry(self._span(children), str(children[0]), values)

    def _value(self, token: Token) -> int | float | str:
        if token.type == "STRING":
            return unquote(token)
        return number_of(token) if token.type == "VALUE" else str(token)
