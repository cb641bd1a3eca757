"""From lark's reductions to the syntax tree: one method per rule or alias of `grammar/smr.lark`."""

from __future__ import annotations

from collections.abc import Sequence

from smartmem_rules.language import syntax as s
from smartmem_rules.language.expressions import tensors_of
from smartmem_rules.language.fixes import Fix, advice, replacement
from smartmem_rules.language.parsing.expression_builder import (
    Children,
    names_of,
    nodes_of,
    number_of,
    tokens_of,
    unquote,
)
from smartmem_rules.language.parsing.rule_builder import RuleBuilder, clause_word, group_of, has
from smartmem_rules.language.parsing.tokens import Token
from smartmem_rules.language.printing.printer import print_expression

_GIVEN_BY_SIGNATURE = "_"


class Builder(RuleBuilder):
    """Builds the items of one file after the other."""

    def start(self, children: Children) -> s.Module:
        lines = self._lines
        span = s.Span(self._file, 1, 1, len(lines), len(lines[-1]) + 1)
        return s.Module(span, tuple(children), self._source)

    def import_item(self, children: Children) -> s.Import:
        return s.Import(self._span(children), unquote(children[1]), places={"path": self._span(children[1:])})

    def ruleset(self, children: Children) -> s.Ruleset:
        name, *after = tokens_of(children, "NAME")
        places = self._name(name) | self._words("after", after)
        return s.Ruleset(
            self._span(children), str(name), tuple(map(str, after)), self._comment(children), places=places
        )

    def operator_family(self, children: Children) -> s.OperatorFamily:
        name, *members = tokens_of(children, "NAME")
        places = self._name(name) | self._words("members", members)
        return s.OperatorFamily(self._span(children), str(name), tuple(map(str, members)), places=places)

    def function(self, children: Children) -> s.Function:
        name, *parameters = tokens_of(children, "NAME")
        places = self._name(name) | self._words("parameters", parameters)
        return s.Function(self._span(children), str(name), tuple(map(str, parameters)), children[-1], places=places)

    def predicate(self, children: Children) -> s.Predicate:
        name, *parameters = tokens_of(children, "NAME")
        places = self._name(name) | self._words("parameters", parameters)
        words = tuple(map(str, parameters))
        return s.Predicate(self._span(children), str(name), words, children[-1], self._comment(children), places=places)

    def analysis(self, children: Children) -> s.Analysis:
        name, parameter, *dtype, kind, merge = tokens_of(children, "NAME")
        places = self._name(name) | {"kind": self._span([kind]), "merge": self._span([merge])}
        return s.Analysis(
            span=self._span(children),
            name=str(name),
            parameter=str(parameter),
            dtype=str(dtype[0]) if dtype else None,
            kind=str(kind),
            merge=str(merge),
            meaning=children[-1],
            comment=self._comment(children),
            places=places,
        )

    def constant(self, children: Children) -> s.Constant:
        places = self._name(children[1])
        return s.Constant(self._span(children), str(children[1]), children[-1], self._comment(children), places=places)

    def negative_number(self, children: Children) -> s.Unary:
        return s.Unary(self._span(children), "-", self.number(children[1:]))

    def member(self, children: Children) -> tuple[s.Expression, ...]:
        return nodes_of(children, s.Expression)

    def family(self, children: Children) -> s.Family:
        variables = tokens_of(children, "NAME")
        members = tuple(child for child in children if isinstance(child, tuple))
        flat = [print_expression(member[0]) for member in members if len(member) == 1]
        for member in members:
            if len(member) != len(variables):
                if len(flat) == len(members) == len(variables):
                    shown = f"({', '.join(flat)})"
                    whole = self._span([members[0][0], members[-1][0]])
                    message = f"a member gives each of the {len(variables)} names a meaning"
                    self._problem(whole, message, replacement(f"write `{shown}`", whole, shown))
                    break
                self._problem(
                    self._span(list(member)),
                    f"this member gives {len(member)} of the family's {len(variables)} names a meaning",
                    _whole_member(variables, member, members),
                )
        return s.Family(
            self._span(children),
            tuple(map(str, variables)),
            members,
            tuple(child for child in children if isinstance(child, s.Item)),
            places=self._words("variables", variables),
        )

    # --- operators -----------------------------------------------------------------------------------

    def operator(self, children: Children) -> s.Operator:
        inputs = [child for group in nodes_of(children, list) for child in nodes_of(group, s.Input)]
        attributes = [child for group in nodes_of(children, list) for child in nodes_of(group, s.Attribute)]
        outputs = [child for group in nodes_of(children, list) for child in nodes_of(group, s.Output)]
        dtypes = [child for group in nodes_of(children, list) for child in nodes_of(group, s.DtypeVariable)]
        name = str(children[1])
        self._refuse_repeated_clauses(children)
        internal = bool(group_of(children, "internal"))
        bindings = nodes_of(children, s.OnnxBinding)
        required = [group[1] for group in nodes_of(children, list) if group and group[0] == "require"]
        operands = {one.name for one in inputs if one.constant is None}
        expects = tuple(one for one in required if any(name in operands for name, _ in tensors_of(one)))
        if not bindings and not internal:
            bindings = (s.OnnxBinding(self._span([children[1]]), "ai.onnx", name, 1, None),)
        return s.Operator(
            span=self._span(children),
            name=name,
            dtypes=tuple(dtypes),
            inputs=tuple(inputs),
            attributes=tuple(attributes),
            outputs=tuple(outputs),
            commutative=bool(group_of(children, "commutative")),
            internal=internal,
            override=bool(group_of(children, "override")),
            onnx=bindings[0] if bindings else None,
            also=bindings[1:],
            requires=tuple(one for one in required if one not in expects),
            expects=expects,
            lets=nodes_of(children, s.Let),
            equations=nodes_of(children, s.EquationSyntax),
            reference=unquote(reference[1]) if (reference := group_of(children, "reference")) else None,
            costs=nodes_of(children, s.Cost),
            declared_class=".".join(names_of(group_of(children, "class"))) or None,
            declared_mapping=".".join(names_of(group_of(children, "mapping"))) or None,
            places=self._name(children[1]) | self._clauses(children),
        )

    def _clauses(self, children: Children) -> dict[str, s.Span]:
        """The places of the words after `class` and `mapping`, and of the flags."""
        places = {}
        for group in nodes_of(children, list):
            word = clause_word(group)
            if word in ("class", "mapping", "reference"):
                places[word] = self._span(group[1:])
            elif word in ("internal", "commutative", "override"):
                places[word] = self._span(group)
        return places

    def dtype_variables(self, children: Children) -> Children:
        return children

    inputs = attributes = outputs = flag = require = class_clause = mapping_clause = dtype_variables
    reference = where = relaxes = tags = cites = unsound = row = index_list = subscript = dtype_variables

    def dtype_variable(self, children: Children) -> s.DtypeVariable:
        name, *classes = tokens_of(children, "NAME")
        places = self._name(name) | self._words("classes", classes)
        return s.DtypeVariable(self._span(children), str(name), tuple(map(str, classes)), places=places)

    def tensor_input(self, children: Children) -> s.Input:
        kind = nodes_of(children, s.TensorType)[0]
        optional, places = has(children, "?"), self._name(children[0])
        return s.Input(self._span(children), str(children[0]), kind, None, optional, False, None, places=places)

    def variadic_input(self, children: Children) -> s.Input:
        places = self._name(children[0])
        return s.Input(self._span(children), str(children[0]), children[-1], None, False, True, None, places=places)

    def constant_input(self, children: Children) -> s.Input:
        default = next(iter(nodes_of(children, s.Expression)), None)
        name, kind = str(children[1]), str(children[3])
        optional, places = has(children, "?"), self._name(children[1]) | {"kind": self._span(children[3:4])}
        return s.Input(self._span(children), name, None, kind, optional, False, default, places=places)

    def attribute(self, children: Children) -> s.Attribute:
        default = next(iter(nodes_of(children, s.Expression)), None)
        required = default is None
        if isinstance(default, s.Name) and default.id == "none":
            default = None
        places = self._name(children[0]) | {"kind": self._span(children[2:3])}
        return s.Attribute(self._span(children), str(children[0]), str(children[2]), default, required, places=places)

    def output(self, children: Children) -> s.Output:
        name, *index = tokens_of(children, "NAME")
        places = self._name(name) | ({"index": self._span(index)} if index else {})
        return s.Output(self._span(children), str(name), children[-1], str(index[0]) if index else None, places=places)

    def tensor_type(self, children: Children) -> s.TensorType:
        return s.TensorType(self._span(children), str(children[0]), nodes_of(children, s.Expression))

    def onnx(self, children: Children) -> s.OnnxBinding:
        domain, name = children[1].split("::")
        versions = [int(token) for token in tokens_of(children, "INT")]
        since = versions[0] if versions else 1
        return s.OnnxBinding(self._span(children), domain, name, since, versions[1] if len(versions) > 1 else None)

    def let(self, children: Children) -> s.Let:
        return s.Let(self._span(children), str(children[1]), children[-1], places=self._name(children[1]))

    def cost(self, children: Children) -> s.Cost:
        quantity = tokens_of(children, "NAME")[0]
        return s.Cost(self._span(children), str(quantity), children[-1], places=self._name(quantity))

    def equation(self, children: Children) -> s.EquationSyntax:
        groups = [nodes_of(group, s.Binder) for group in nodes_of(children, list)]
        member = self._member(children) if len(groups) == 2 else None
        tensor = tokens_of(children, "NAME")[0]
        places = self._name(tensor)
        if member is not None:
            places["member"] = self._span(nodes_of(children, list)[0][1:2])
        view, scan = has(children[:1], "view"), has(children[:1], "scan")
        if view:
            places["view"] = self._span(children[:1])
        return s.EquationSyntax(
            self._span(children), str(tensor), member, groups[-1], children[-1], view, scan, places=places
        )

    def _member(self, children: Children) -> str:
        group = nodes_of(children, list)[0]
        binders = nodes_of(group, s.Binder)
        plain = len(binders) == 1 and binders[0].kind == "loop" and isinstance(binders[0].bound, s.Name)
        if not plain or binders[0].bound != s.Name(binders[0].span, _GIVEN_BY_SIGNATURE):
            self._problem(
                self._span(group),
                "the number of a variadic output is one plain name",
                advice("write `ys[j][...] = ...`"),
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
        name = tokens_of(children, "NAME")[0]
        return s.Binder(span, str(name), kind, bound, places=self._name(name))

    # --- tables and blocks ---------------------------------------------------------------------------------

    def table(self, children: Children) -> s.Table:
        header, *body = nodes_of(children, list)
        columns = tuple(str(cell) for cell in header)
        cells: dict[tuple[str, str], tuple[str, ...]] = {}
        places = self._name(children[1]) | self._words("column", header[::-1])
        for row in body:
            places.setdefault(f"row:{row[0]}", self._span(row[:1]))
            for column, cell in zip(columns, row[1:], strict=False):
                cells.setdefault((str(row[0]), column), tuple(cell.split("/")))
                places.setdefault(f"cell:{row[0]}:{column}", self._span([cell]))
            if len(row) - 1 > len(columns):
                extra = row[len(columns) + 1 :]
                fix = advice("leave the cell out, or name its column in the first line")
                said = f"row `{row[0]}` has more cells than the {len(columns)} columns"
                self._problem(self._span(extra), said, fix)
        rows = tuple(str(row[0]) for row in body)
        for names, kind, lines in ((rows, "row", body), (columns, "column", [[cell] for cell in header])):
            for number, name in enumerate(names):
                if name in names[:number]:
                    places.setdefault(f"second {kind}:{name}", self._span(lines[number][:1]))
        return s.Table(self._span(children), str(children[1]), rows, columns, cells, places=places)

    def block(self, children: Children) -> s.Block:
        name, *rest = tokens_of(children, "NAME")
        places = self._name(name) | ({"subject": self._span(rest)} if rest else {})
        return s.Block(
            span=self._span(children),
            kind=str(children[0]),
            name=str(name),
            subject=str(rest[0]) if rest else None,
            entries=nodes_of(children, s.Entry),
            comment=self._comment(children),
            places=places,
        )

    def entry(self, children: Children) -> s.Entry:
        values = tuple(self._value(token) for token in children[1:-1])
        places = {"key": self._span(children[:1])}
        places |= {f"value:{number}": self._span([token]) for number, token in enumerate(children[1:-1])}
        return s.Entry(self._span(children), str(children[0]), values, places=places)

    def _value(self, token: Token) -> int | float | str:
        if token.type == "STRING":
            return unquote(token)
        return number_of(token) if token.type == "VALUE" else str(token)


def _whole_member(variables: Sequence[str], member: Sequence[s.Expression], members: Sequence[Sequence[object]]) -> Fix:
    """How a member of a family gets as many words as the family has names."""
    words = [print_expression(one) for one in member]
    if len(variables) == 1:
        return advice("write one word")
    if len(words) > len(variables):
        return advice(f"leave a word out: it has one for each of {', '.join(f'`{one}`' for one in variables)}")
    lacking = variables[len(words) :]
    shown = ", ".join([*words, *("..." for _ in lacking)])
    said = f"say what {' and '.join(f'`{one}`' for one in lacking)} stand{'s' * (len(lacking) == 1)} for: `({shown})`"
    whole = next((one for one in members if len(one) == len(variables)), None)
    if whole is None:
        return advice(said)
    example = ", ".join(print_expression(one) for one in whole if isinstance(one, s.Expression))
    return advice(f"{said}, as in `({example})`")
