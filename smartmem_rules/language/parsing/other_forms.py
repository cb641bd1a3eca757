"""Forms that other languages have and rule files write otherwise: conditions, loops, members, definitions."""

from __future__ import annotations

import re

from smartmem_rules.language.fixes import Edit, Fix, advice, edit, replacement
from smartmem_rules.language.parsing.stops import Stop
from smartmem_rules.language.vocabulary import ALL_FUNCTIONS

_CONDITION = "write `if CONDITION then VALUE else OTHER`"
_MEMBER = re.compile(r"([A-Za-z_]\w*)\s*$")


def other_forms(stop: Stop) -> Fix | None:
    """What to write in place of a form of another language."""
    return _of_expressions(stop) or _of_members(stop) or _of_rules(stop) or _of_definitions(stop)


def _of_expressions(stop: Stop) -> Fix | None:
    found, text = stop.found, stop.before
    if found == "?" or (found == "if" and not _in_rule(text) and re.search(r"[\])\w]\s*$", text)):
        return advice(_CONDITION)
    if found == "for" and re.search(r"\b(sum|max|min|prod|mean|any|all)\s*\([^()]*$", text):
        return advice("a reduction names its range first: `sum(k < K) x[k]`")
    if found == "else" and re.search(r"\bif\b(?!.*\bthen\b)", text, re.DOTALL):
        return advice(_CONDITION)
    if "ELSE" in stop.accepted and re.search(r"\bif\b.*\bthen\b(?!.*\belse\b)", text, re.DOTALL):
        return advice("an `if` has an `else`: `if CONDITION then VALUE else OTHER`")
    if found == "in" and _in_rule(text):
        return advice("write `contains([1, 2], VALUE)`")
    return None


def _of_members(stop: Stop) -> Fix | None:
    """`x.rank` and `x.shape[0]`."""
    rest = stop.line[stop.span.column - 1 :]
    method = re.match(r"\.([A-Za-z_]\w*)", rest)
    owner = _MEMBER.search(stop.line[: stop.span.column - 1])
    if method is None or owner is None:
        return None
    word = method[1]
    if word[0].isupper():
        first = stop.span._replace(column=owner.start() + 1, end_line=stop.span.line, end_column=stop.span.column + 1)
        others = stop.along(rf"\b{owner[1]}\.(?=[A-Z])")
        said = f"operators stand without their domain: `{word}(...)`"
        return edit(said, Edit(first, ""), *(Edit(one, "") for one in others))
    if word not in ALL_FUNCTIONS:
        return advice(f"a function stands before what it is of: `rank({owner[1]})`")
    whole = stop.span._replace(column=owner.start() + 1, end_line=stop.span.line, end_column=_end_of(stop, method))
    return replacement(f"write `{word}({owner[1]})`", whole, f"{word}({owner[1]})")


def _end_of(stop: Stop, match: re.Match[str]) -> int:
    """The column behind what matches at the place of a stop."""
    return stop.span.column + match.end()


def _of_rules(stop: Stop) -> Fix | None:
    found, text = stop.found, stop.before
    if found == "if" and _in_rule(text):
        return replacement("guards stand behind `where`", stop.span, "where")
    if re.search(r"\beliminate\s+\w+\s+in\s+\w+\s+where\s*$", text):
        return advice("an elimination names its operator: `eliminate NAME in eliminate Reshape where ...`")
    if found == ":":
        named = _keyword(stop) or _named_part(stop)
        if named is not None:
            return named
        if re.search(r"[;,]\s*\w+\s*$", text) and _in_rule(text):
            return replacement("write `=`", stop.here(1), "=")
        if re.search(r"\bfor\b[^{]*$", text):
            return advice("the rules of a family stand in braces: `for Op in Relu, Exp { ... }`")
        if not stop.line[stop.span.column :].strip():
            return replacement("nothing ends with `:` here", stop.here(1), "")
    if "BUNDLE" not in stop.accepted and re.search(r";\s*$", text) and _in_rule(text) and "NAME" in stop.accepted:
        return advice("attributes have names: `Softmax(x; axis = 1)`")
    return None


_CONDITIONS = re.compile(r":-|\||/;|such\s+that\b|s\.\s*t\.|so\s+that\b|only\s+if\b|iff?\b|as\s+long\s+as\b")
"""What stands before conditions in other languages, and in texts on mathematics."""


def guards_elsewhere(stop: Stop) -> Fix | None:
    """`LEFT => RIGHT | GUARD`, with the guards on a line of their own or behind the right side."""
    begin = stop.span.column - 1 - (stop.found == ";" and stop.line[: stop.span.column - 1].endswith("/"))
    sign = _CONDITIONS.match(stop.line, begin)
    if sign is None or not _in_rule(stop.before):
        return None
    sides = re.search(r"<?=>.*[\w)]\s*(?:/)?$", stop.before, re.DOTALL)
    if sides is None or re.search(r"\bwhere\b", stop.before):
        return None
    place = stop.span._replace(column=begin + 1, end_line=stop.span.line, end_column=sign.end() + 1)
    return replacement("guards stand behind `where`", place, "where")


_GUARDS = (
    "when", "where", "if", "unless", "guard", "guards", "given", "with", "cond", "condition", "require", "requires",
)  # fmt: skip
_KEYWORDS = {
    **dict.fromkeys(("ruleset", "rules", "set", "group"), "a rule names its rule set: `rewrite NAME in algebra`"),
    **dict.fromkeys(("name", "id"), "a rule has its name behind `rewrite`: `rewrite NAME in algebra`"),
    **dict.fromkeys(
        ("subsume", "subsumes", "unextractable", "merge", "on_merge", "vars", "variables"),
        "leave it out: no clause of rules says that",
    ),
    **dict.fromkeys(("cost", "weight", "priority"), "leave it out: `cost` clauses of operators say what pays"),
}
"""What keywords with a colon say in rules of other languages, such as egglog."""


def _keyword(stop: Stop) -> Fix | None:
    """`:when guard` behind the sides of a rule."""
    word = re.match(r":([A-Za-z][\w\-]*)\b(?!\s*=)", stop.rest)
    if word is None or not _in_rule(stop.before) or not re.search(r"\s$", stop.text):
        return None
    if word[1] in _GUARDS and not re.search(r"\bwhere\b", stop.before):
        unless = word[1] == "unless"
        said = "guards stand behind `where`" + ("; `not (...)` turns one round" if unless else "")
        return advice(said) if unless else replacement(said, stop.here(word.end()), "where")
    if word[1] in _GUARDS:
        return advice("all guards of a rule stand behind one `where`, with commas between them")
    said = _KEYWORDS.get(word[1].replace("-", "_"), "")
    return advice(said) if said else None


def _named_part(stop: Stop) -> Fix | None:
    """`Exp(x):$e`, a part of a pattern with a name."""
    name = re.match(r":\s*[$@%]?([A-Za-z_]\w*)", stop.line[stop.span.column - 1 :])
    text = stop.before.rstrip()
    if name is None or not text.endswith(")") or not _in_rule(text) or re.search(r"\bwhere\b", text):
        return None
    begin, depth = len(text) - 1, 1
    while begin and depth:
        begin -= 1
        depth += (text[begin] == ")") - (text[begin] == "(")
    operator = re.search(r"[A-Za-z_]\w*$", text[:begin])
    if operator is None:
        return None
    part = " ".join(text[operator.start() :].split())
    return advice(
        f"a part of a pattern has a name by a line `let {name[1]} = {part}` behind the sides: write `{name[1]}` here"
    )


def _of_definitions(stop: Stop) -> Fix | None:
    found, text = stop.found, stop.before
    if found == "{" and re.search(r"\b(function|predicate)\s+\w+\s*\([^)]*\)\s*$", text):
        return advice("a function is one expression: `function f(a) = a + 1`")
    if re.search(r"\breturn\s*$", text):
        what = "an equation gives the elements: `y[*i] = ...`" if "operator" in text else "leave `return` out"
        return advice(what)
    if found == ":" and re.search(r"\blet\s+\w+\s*$", text) and stop.line[stop.span.column :].startswith("="):
        return replacement("write `=`", stop.here(2), "=")
    if found == ":" and re.search(r"\)\s*$", text) and "operator" in text:
        return replacement("outputs stand behind `->`", stop.here(1), " ->")
    if found == "{" and re.search(r"\boperator\b[^{]*\)\s*$", text):
        return advice("an operator names its outputs: `-> y: T[*S]`")
    if found == "=" and re.search(r"\boperator\b[^{]*;[^{]*\w\s*$", text):
        return advice("an attribute has a kind: `axis: int = -1`")
    if found == "(" and re.search(r"[{\n]\s*\w+\s*$", text) and "operator" in text:
        return advice("indices stand in square brackets: `y[*i] = ...`")
    if re.search(r"\bonnx\s*$", text) and re.fullmatch(r"[\w.\-]+\.\w+", found):
        domain, _, name = found.rpartition(".")
        return edit("a domain ends with `::`", Edit(stop.span, f"{domain}::{name}"))
    return None


def _in_rule(text: str) -> bool:
    return re.match(r"(rewrite|eliminate|index|keep)\b", text) is not None
