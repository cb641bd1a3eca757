"""Random syntax trees for hypothesis."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from smartmem_rules.language import syntax as s
from smartmem_rules.language.patterns import pattern_of
from smartmem_rules.language.printing.printer import print_item

AT = s.NOWHERE
NAMES = st.sampled_from(["a", "b", "k", "S", "K", "max_pool", "index", "view_"])
FUNCTIONS = st.sampled_from(["f", "rank", "max", "sum", "prod", "put"])
NUMBERS = st.integers(0, 10**17) | st.floats(0, 1e30, allow_nan=False).map(abs)
WORDS = st.sampled_from(["first", "alpha", "x_1", "longer_name"])
STRINGS = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=6)


def printed(module: s.Module) -> str:
    """All items, a blank line between them."""
    return "\n\n".join(print_item(item) for item in module.items) + "\n"


def _leaf() -> st.SearchStrategy[s.Expression]:
    return st.one_of(
        NAMES.map(lambda name: s.Name(AT, name)),
        NUMBERS.map(lambda value: s.Number(AT, value)),
        STRINGS.map(lambda value: s.Text(AT, value)),
        st.booleans().map(lambda value: s.Truth(AT, value)),
    )


def _binders(inner: st.SearchStrategy[s.Expression]) -> st.SearchStrategy[s.Binder]:
    return st.builds(
        lambda name, kind, bound: s.Binder(AT, name, kind, bound),
        NAMES,
        st.sampled_from(["loop", "loops", "unrolled"]),
        inner,
    )


def _grown(inner: st.SearchStrategy[s.Expression]) -> st.SearchStrategy[s.Expression]:
    operators = st.sampled_from(["+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "!=", "and", "or"])
    arguments = st.lists(inner | inner.map(lambda one: s.Splat(AT, one)), max_size=3).map(tuple)
    slices = st.builds(lambda low, high: s.Slice(AT, low, high), st.none() | inner, st.none() | inner)
    items = st.lists(inner | slices | inner.map(lambda one: s.Broadcast(AT, one)), max_size=2).map(tuple)
    loop = _binders(inner)
    return st.one_of(
        st.builds(lambda o, a, b: s.Binary(AT, o, a, b), operators, inner, inner),
        st.builds(lambda o, a: s.Unary(AT, o, a), st.sampled_from(["-", "not"]), inner),
        st.builds(lambda f, a: s.Call(AT, f, a), FUNCTIONS, arguments),
        st.builds(lambda a: s.ListOf(AT, a), arguments),
        st.builds(lambda c, a, b: s.Conditional(AT, c, a, b), inner, inner, inner),
        st.builds(lambda b, i, d: s.Subscript(AT, b, i, d), inner, items, st.none() | inner),
        st.builds(
            lambda b, loops, c: s.Comprehension(AT, b, tuple(loops), c),
            inner,
            st.lists(loop, min_size=1, max_size=2),
            st.none() | inner,
        ),
        st.builds(
            lambda k, loops, b: s.Reduction(AT, k, tuple(loops), None, b),
            st.sampled_from(["sum", "max", "min", "prod", "any", "all"]),
            st.lists(loop, min_size=1, max_size=2),
            inner,
        ),
        st.builds(
            lambda loop, c, b: s.Reduction(AT, "first", (replace(loop, kind="unrolled"),), c, b),
            loop,
            inner,
            inner,
        ),
    )


def expressions() -> st.SearchStrategy[s.Expression]:
    """Expressions of all kinds."""
    return st.recursive(_leaf(), _grown, max_leaves=12)


def patterns() -> st.SearchStrategy[s.Pattern]:
    """Sides of rewrites."""
    leaf: st.SearchStrategy[s.Pattern] = st.one_of(
        st.sampled_from(["x", "y", "_"]).map(lambda name: s.PatternVariable(AT, name)),
        st.integers(-9, 9).map(lambda value: s.PatternNumber(AT, value)),
    )
    small = st.recursive(_leaf(), _grown, max_leaves=3)
    computed = small.filter(lambda one: isinstance(pattern_of(one), s.PatternComputed))
    leaf |= computed.map(lambda one: s.PatternComputed(AT, one))
    attribute = st.builds(lambda name, value: s.PatternAttribute(AT, name, value), WORDS, small)

    def operator(inner: st.SearchStrategy[s.Pattern]) -> st.SearchStrategy[s.Pattern]:
        return st.builds(
            lambda name, arguments, attributes, bundle, variadic, output: s.PatternOperator(
                AT, name, tuple(arguments), tuple(attributes), bundle, variadic, output
            ),
            st.sampled_from(["Add", "MatMul"]),
            st.lists(inner, max_size=2),
            st.lists(attribute, max_size=2),
            st.none() | WORDS,
            st.none() | WORDS,
            st.none() | st.integers(0, 3),
        )

    return operator(st.recursive(leaf, operator, max_leaves=4))


def _lets() -> st.SearchStrategy[tuple[s.RuleLet, ...]]:
    small = st.recursive(_leaf(), _grown, max_leaves=3)
    let = st.builds(lambda name, value: s.RuleLet(AT, name, value), WORDS, small | patterns())
    return st.lists(let, max_size=2).map(tuple)


def _items() -> st.SearchStrategy[s.Item]:
    small = st.recursive(_leaf(), _grown, max_leaves=4)
    words = st.lists(WORDS, max_size=2, unique=True).map(tuple)
    parameters = st.lists(st.sampled_from(["a", "b", "n"]), max_size=2, unique=True).map(tuple)
    guards = st.lists(small, max_size=2).map(tuple)
    equation = st.builds(
        lambda name, kind, body: s.EquationSyntax(
            AT, "y", None, (s.Binder(AT, name, kind, s.Name(AT, "_")),), body, False
        ),
        WORDS,
        st.sampled_from(["loop", "loops"]),
        small,
    )
    type_ = s.TensorType(AT, "T", (s.Splat(AT, s.Name(AT, "S")),))
    return st.one_of(
        st.builds(lambda name, parameters, body: s.Function(AT, name, parameters, body), WORDS, parameters, small),
        st.builds(lambda name, parameters, body: s.Predicate(AT, name, parameters, body, ""), WORDS, parameters, small),
        st.builds(lambda value: s.Constant(AT, "HALF", value, ""), small),
        st.builds(lambda name, after: s.Ruleset(AT, name, after, "a comment"), WORDS, words),
        st.builds(
            lambda name, left, right, both, guards, relaxes, unsound, explores, tags, lets, cites: s.Rewrite(
                AT, name, "algebra", left, right, both, guards, relaxes, unsound, "", explores, tags, lets, cites
            ),
            WORDS,
            patterns(),
            patterns(),
            st.booleans(),
            guards,
            st.sampled_from([(), ("nan",), ("nan", "infinities")]),
            st.none() | STRINGS,
            st.booleans(),
            words,
            _lets(),
            st.none() | STRINGS,
        ),
        st.builds(
            lambda name, guards, tags: s.Eliminate(AT, name, "eliminate", "Add", guards, "", tags), WORDS, guards, words
        ),
        st.builds(
            lambda name, left, right, guards: s.IndexRule(AT, name, left, right, guards, ""),
            WORDS,
            small,
            small,
            guards,
        ),
        st.builds(
            lambda equations, requires, commutative: s.Operator(
                AT,
                "Twice",
                (),
                (s.Input(AT, "x", type_, None, False, False, None),),
                (),
                (s.Output(AT, "y", type_, None),),
                commutative,
                True,
                None,
                (),
                tuple(requires),
                (),
                tuple(equations),
                None,
                None,
            ),
            st.lists(equation, min_size=1, max_size=2),
            st.lists(small, max_size=1),
            st.booleans(),
        ),
        st.builds(
            lambda values: s.Block(AT, "fuse", "rows", None, (s.Entry(AT, "scratch", tuple(values)),), ""),
            st.lists(st.integers(-9, 9) | STRINGS, max_size=3),
        ),
    )


def modules() -> st.SearchStrategy[s.Module]:
    """Whole files."""
    item = _items().filter(lambda item: not isinstance(item, s.Ruleset))
    family = _family(item | _family(item))
    items = st.lists(_items() | family, max_size=4)
    return items.map(lambda made: s.Module(AT, tuple(made), ""))


def _family(items: st.SearchStrategy[s.Item]) -> st.SearchStrategy[s.Item]:
    members = ((s.Name(AT, "Add"),), (s.Name(AT, "Mul"),))
    return st.lists(items, max_size=2).map(lambda made: s.Family(AT, ("Op",), members, tuple(made)))
