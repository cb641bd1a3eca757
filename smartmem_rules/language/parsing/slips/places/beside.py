"""Values that stand beside each other with nothing between them: calls without parentheses, foreign operators."""

from __future__ import annotations

import re

from smartmem_rules.language.fixes import advice
from smartmem_rules.language.parsing.slips.places.pieces import in_body, in_rule, opening
from smartmem_rules.language.parsing.slips.slip import Slip, written
from smartmem_rules.language.parsing.stops import Stop
from smartmem_rules.language.vocabulary import ALL_FUNCTIONS

_INFIX = {
    "div": "//", "mod": "%", "rem": "%", "times": "*", "plus": "+", "minus": "-", "pow": "**",
    "equals": "==", "eq": "==", "is": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "otherwise": "else", "default": "else", "orelse": "else",
}  # fmt: skip
_LOWER = ("and", "or", "not", "else", "then", "in")
_REDUCTIONS = {
    **dict.fromkeys(("sum", "add", "total", "sigma", "accumulate"), "sum"),
    **dict.fromkeys(("max", "maximum", "amax"), "max"),
    **dict.fromkeys(("min", "minimum", "amin"), "min"),
    **dict.fromkeys(("prod", "product", "mul"), "prod"),
    **dict.fromkeys(("mean", "avg", "average"), "mean"),
    **dict.fromkeys(("any", "exists", "some"), "any"),
    **dict.fromkeys(("all", "forall", "every"), "all"),
}
"""By the name in lower case, without `reduce` before it."""
_OURS = frozenset(("sum", "max", "min", "prod", "mean", "any", "all", "first"))
_TYPES = frozenset(("int", "auto", "var", "let", "size_t", "long", "uint", "int32", "int64", "const"))
_VALUE = re.compile(r"(?P<left>[A-Za-z_]\w*|\d+(?:\.\d+)?|[)\]])(?P<gap>[^\S\n]+)\Z")
_EARLIER = re.compile(
    r"(?P<left>[A-Za-z_]\w*|\d+(?:\.\d+)?|[)\]])[^\S\n]+(?P<word>[A-Za-z_]\w*)(?:\s*\[[^\[\]]*\]){0,2}\s*\Z"
)
_WORDS = frozenset(
    (
        *("view", "scan", "let", "require", "and", "or", "not", "if", "then", "else", "in", "for", "where", "const"),
        *("operator", "internal", "commutative", "override", "class", "mapping", "onnx", "cost", "reference", "return"),
    )
)


def beside(stop: Stop) -> Slip | None:
    """What is missing between two values of a line."""
    if not (in_body(stop) or in_rule(stop) or re.match(r"(function|predicate|let|analysis)\b", stop.before)):
        return None
    return _here(stop) or _earlier(stop)


def _here(stop: Stop) -> Slip | None:
    """Where the parser stops at the second value."""
    place = len(stop.text)
    word = re.match(r"[A-Za-z_]\w*|\d+|\(|\?\?|\|\|", stop.rest)
    left = _VALUE.search(stop.text)
    if word is None or left is None or left["left"] in _WORDS:
        return None
    if word[0] in ("??", "||"):
        return _instead(stop, place, place + 2, "else") if _optional(stop) else None
    if word[0] not in _LOWER and word[0].lower() in _LOWER:
        return _instead(stop, place, place + word.end(), word[0].lower())
    if word[0] in _INFIX:
        none = word[0] == "is" and re.match(r"is\s+(?:not\s+)?(?:[nN]one|null|nil)\b", stop.rest)
        return None if none else _instead(stop, place, place + word.end(), _INFIX[word[0]])
    if word[0] in ("and", "or", "not", "if", "then", "else", "in", "for", "where", "is"):
        return None
    return _call(stop, left, place) if word[0] != "(" else None


def _earlier(stop: Stop) -> Slip | None:
    """Where the parser takes the second value for the beginning of an equation, and stops behind it."""
    found = _EARLIER.search(stop.text)
    if found is None or not in_body(stop) or not set(stop.signs) <= {"[", "="} or found["left"] in _WORDS:
        return None
    if stop.found == "=" and not _follows_reduction(stop, found):
        return None
    line = stop.text[stop.text.rfind("\n", 0, found.start()) + 1 : found.start("word")]
    if re.fullmatch(r"\s*(?:operator\b.*\{)?\s*[A-Za-z_]\w*\s*", line) or ("=" not in line and "require" not in line):
        return None  # the first words of a clause
    word = found["word"]
    begin, end = found.span("word")
    if word not in _LOWER and word.lower() in _LOWER:
        return _instead(stop, begin, end, word.lower())
    if word in _INFIX:
        return _instead(stop, begin, end, _INFIX[word])
    return _call(stop, found, begin)


def _follows_reduction(stop: Stop, found: re.Match[str]) -> bool:
    return found["left"] == ")" and stop.found != "="


def _instead(stop: Stop, begin: int, end: int, new: str) -> Slip:
    return written(stop, f"write `{new}`", begin, end, new)


def _optional(stop: Stop) -> bool:
    """Whether a read of an operand that may be absent stands before the place."""
    read = re.search(r"\b(\w+)\[[^\[\]]*\]\s*\Z", stop.text)
    return read is not None and re.search(rf"\b{read[1]}\s*:\s*\w+\s*\[[^\]]*\]\s*\?", stop.before) is not None


def _call(stop: Stop, left: re.Match[str], begin: int) -> Slip | None:
    """`exp x[i]` and `Sum(k < K) x[k]`; else what may join the values."""
    word = left["left"]
    operand = re.compile(r"[A-Za-z_]\w*(?:\[[^\[\]]*\]|\([^()]*\))?|\d+(?:\.\d+)?").match(stop.whole, begin)
    if operand is None:
        return None
    if word in _TYPES and re.search(r"[(,\[]\s*\Z", stop.text[: left.start("left")]):
        message = "an index has no type"
        return written(stop, f"leave `{word}` out", left.start("left"), begin, "", message)
    if word in ALL_FUNCTIONS and word not in _OURS:
        new = f"{word}({operand[0]})"
        message = f"the argument of `{word}` stands in no parentheses"
        return written(stop, f"write `{new}`", left.start("left"), operand.end(), new, message)
    if word == ")":
        return _reduction(stop, left.start("left") + 1, begin)
    if word in ("]",) or re.fullmatch(r"\d.*", word):
        return _joined(stop, left, operand)
    return None


def _reduction(stop: Stop, end: int, begin: int) -> Slip | None:
    """A call with something behind it, which is a reduction where its name and its range are right."""
    bracket = opening(stop.text, end)
    called = re.search(r"([A-Za-z_]\w*)\s*\Z", stop.text[:bracket]) if bracket >= 0 else None
    if called is None:
        return None
    name, inner = called[1], stop.text[bracket + 1 : end - 1]
    ranged = re.match(r"\s*\*?\s*\w+\s*(<(?!=)|in\b)", inner) is not None
    plain = re.sub(r"^reduce_?", "", name.lower())
    if name not in _OURS and plain in _REDUCTIONS and ranged:
        new = _REDUCTIONS[plain]
        return written(stop, f"write `{new}`", *called.span(1), new, f"`{name}` is no reduction")
    if name.lower().startswith("arg") and ranged:
        said = (
            "the first index at which something holds: `first(k in K, x[k] == m) k`, where `m` is the largest element"
        )
        return Slip(advice(said), stop.between(*called.span(1)), f"`{name}` is no reduction")
    if name not in _OURS:
        return None
    where = stop.between(bracket + 1, end - 1) if inner.strip() else stop.between(bracket, end)
    message = "the range of a reduction reads `INDEX < EXTENT`"
    index = re.match(r"\s*(?:\d+\s*<=?\s*)?([a-z_]\w*)\s*(<=|>|,|=|:)\s*([A-Za-z_]\w*)(\s*-\s*1)?\s*\Z", inner)
    if index is not None:
        new = f"{index[1]} < {index[3]}"
        return written(stop, f"write `{name}({new})`", bracket + 1, end - 1, new, message)
    return Slip(advice(f"write `{name}(k < K)`, with the extent of the axis for `K`"), where, message)


def _joined(stop: Stop, left: re.Match[str], operand: re.Match[str]) -> Slip | None:
    """Two values of which a product is meant, if any."""
    if not in_body(stop) or "[" not in operand[0]:
        return None
    bracket = opening(stop.text, left.start("left") + 1) if left["left"] == "]" else left.start("left")
    read = re.search(r"[A-Za-z_]\w*\Z", stop.text[:bracket])
    first = stop.text[(read.start() if read is not None else bracket) : left.end("left")]
    where = stop.between(left.start("left"), operand.end())
    said = f"write an operator between them, such as `{first} * {operand[0]}`"
    return Slip(advice(said), where, f"nothing joins `{first}` and `{operand[0]}`")
