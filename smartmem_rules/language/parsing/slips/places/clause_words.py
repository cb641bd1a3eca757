"""Words that begin no clause of an operator."""

from __future__ import annotations

import re

from smartmem_rules.language.fixes import Edit, advice, edit, nearest
from smartmem_rules.language.parsing.slips.places.pieces import in_body
from smartmem_rules.language.parsing.slips.slip import Slip, line_end, written
from smartmem_rules.language.parsing.stops import Stop
from smartmem_rules.language.vocabulary import MAPPINGS, OPERATOR_CLAUSES

_OTHERS = {
    **dict.fromkeys(("private", "hidden", "abstract", "virtual", "intern", "local_only"), "internal"),
    **dict.fromkeys(("symmetric", "commutes", "commutativity"), "commutative"),
    **dict.fromkeys(("overrides", "replaces", "replace", "redefine"), "override"),
    **dict.fromkeys(("map", "mapping_type", "pattern"), "mapping"),
    **dict.fromkeys(("refers", "numpy", "ref", "golden", "oracle"), "reference"),
}
_SAID = {
    **dict.fromkeys(
        ("opset", "opsets", "version", "versions", "since", "since_version", "since_opset"),
        "opsets stand in the `onnx` clause: `onnx ai.onnx::NAME 13.. ;`",
    ),
    **dict.fromkeys(
        ("tags", "cites", "explores", "relaxes", "defers", "unsound"),
        "it is a clause of rules: write it behind the sides of a `rewrite`, or leave it out",
    ),
    **dict.fromkeys(
        ("associative", "idempotent", "pure", "deterministic", "inline", "elementwise", "linear", "broadcast"),
        "no clause says that: what an operator is follows from its equations; leave it out",
    ),
    **dict.fromkeys(
        ("for", "while", "loop", "foreach", "do"),
        "there are no loops: an equation gives the elements at all indices, `y[i] = ...`",
    ),
    **dict.fromkeys(("doc", "note", "comment", "description", "help"), "a comment begins with `#`"),
    **dict.fromkeys(("end", "pass", "done", "begin"), "leave it out: the closing brace ends an operator"),
    **dict.fromkeys(
        ("flops", "bytes", "latency"), "what an operator costs stands behind `cost`: `cost operations = e`"
    ),
}
_DECLARATIONS = ("int", "float", "var", "const", "val", "auto", "mut", "def", "set", "double", "long", "bool", "static")
_CLAUSES = (
    "a clause begins with `onnx`, `internal`, `commutative`, `override`, `require`, `let`, `class`, `mapping`, "
    "`reference` or `cost`; an equation reads `y[*i] = EXPRESSION`"
)


def clause_words(stop: Stop) -> Slip | None:
    """What to write for the first word of a line that begins no clause."""
    if not in_body(stop):
        return None
    flag = _flag(stop)
    if flag is not None:
        return flag
    if "[" not in stop.signs or not set(stop.signs) <= {"[", "="}:
        return None
    first = re.search(r"(?:\A|[{\n])[^\S\n]*([A-Za-z_]\w*)\s*\Z", stop.text)
    if first is None:
        return None
    word, begin, end = first[1], *first.span(1)
    if stop.found in ("(", ":", "{") or word == "return":
        return None
    where = stop.between(begin, end)
    if stop.found == "=":
        return _value(stop, word, begin)
    message = f"`{word}` is no clause of operators"
    bound = re.match(r"([A-Za-z_]\w*)\s*:?=(?!=)", stop.rest)
    if word in _DECLARATIONS and bound is not None:
        return written(stop, f"write `let {bound[1]} = ...`", begin, end, "let", message)
    if word in _SAID:
        return Slip(advice(_SAID[word]), where, message)
    near = _OTHERS.get(word.lower()) or nearest(word, OPERATOR_CLAUSES)
    if near is not None and near != word:
        said = f"did you mean `{near}`?" if word.lower() not in _OTHERS else f"write `{near}`"
        return written(stop, said, begin, end, near, message)
    if word in OPERATOR_CLAUSES:
        return None
    return Slip(advice(_CLAUSES), where, message)


def _value(stop: Stop, name: str, begin: int) -> Slip | None:
    """`half = K // 2`, a value of extents and attributes."""
    line = stop.whole[len(stop.text) + 1 : line_end(stop)]
    output = re.search(rf"->[^{{]*\b{name}\b\s*[\[:]", stop.before) is not None
    if name in ("operations", "bytes", "launches"):
        said = f"what an operator costs stands behind `cost`: write `cost {name} = ...`"
        return written(stop, said, begin, begin, "cost ", f"`{name}` is no clause of operators")
    if output or "[" in line or re.search(rf"\b{name}\[", stop.rest):
        return None
    message = f"`{name}` has no indices, as tensors have, and no `let`, as values have"
    return written(stop, f"write `let {name} = ...` for a value, `{name}[*i] = ...` for a tensor", begin, begin, "let ",
                   message)  # fmt: skip


def _flag(stop: Stop) -> Slip | None:
    """`internal = true`, `internal: true` and `@internal`."""
    place = len(stop.text)
    before = re.search(r"\b(internal|commutative|override)\s*\Z", stop.text)
    value = re.match(r"(?:[=:]\s*)(?:true|True|yes|1)\b[ \t]*;?", stop.rest)
    if before is not None and value is not None:
        said = f"`{before[1]}` stands alone: leave the rest out"
        return written(stop, said, place, place + value.end(), "")
    word = re.search(r"\b(internal|commutative|override)[^\S\n]+(true|True|yes)\s*\Z", stop.text)
    if word is not None:
        return written(stop, f"`{word[1]}` stands alone: leave `{word[2]}` out", *word.span(2), "")
    mark = re.match(r"@\s*(\w+)", stop.rest)
    if stop.found == "@" and mark is not None and mark[1] in OPERATOR_CLAUSES:
        return written(stop, f"write `{mark[1]}`", place, place + 1, "")
    more = re.match(r",\s*(internal|commutative|override)\b", stop.rest)
    if before is not None and more is not None:
        return written(stop, "clauses stand beside each other: leave the comma out", place, place + 1, "")
    return None


def mappings(stop: Stop) -> Slip | None:
    """`class` and `mapping` with quotes, blanks and other signs."""
    place = len(stop.text)
    if not in_body(stop):
        return None
    quoted = re.match(r'"([\w.]+)"', stop.rest)
    if quoted is not None and re.search(r"\b(class|mapping)\s*\Z", stop.text):
        return written(stop, "it stands without quotes", place, place + quoted.end(), quoted[1])
    apart = re.search(r"\bmapping\s+(\w+\s+\w+)\s*\Z", stop.text)
    rest = re.match(r"\w+", stop.rest)
    if apart is not None and rest is not None:
        new = "_".join(f"{apart[1]} {rest[0]}".split())
        if new in MAPPINGS:
            return written(stop, f"write `{new}`", apart.start(1), place + rest.end(), new)
    kind = re.compile(r"class\s+(IL[DI])\s*(?:::|\s|-|_|/)\s*(Variable|Fixed)\b").search(stop.whole)
    if kind is not None and kind.start() < place <= kind.end():
        new = f"{kind[1]}.{kind[2]}"
        return written(stop, f"write `{new}`", kind.start(1), kind.end(2), new, "a dot joins the words of a class")
    if stop.found == "," and re.search(r"\b(class\s+[\w.]+|mapping\s+\w+)\s*\Z", stop.text):
        more = re.match(r"(\s*,\s*[\w.]+)+", stop.rest)
        if more is not None:
            change = Edit(stop.between(place, place + more.end()), "")
            return Slip(edit("an operator has one class and one mapping type: leave the others out", change))
    return None
