"""Signs of other languages in expressions and before them, and separators of the wrong kind."""

from __future__ import annotations

import re

from smartmem_rules.language.fixes import Edit, advice, edit
from smartmem_rules.language.parsing.slips.places.pieces import closing, in_body, in_rule
from smartmem_rules.language.parsing.slips.slip import Slip, written
from smartmem_rules.language.parsing.stops import Stop

_RUN = re.compile(r"[=<>!~:+\-*/^|&\\≔]+")
_COMPARED = {
    "=>": ">=", "=<": "<=", "~=": "!=", "/=": "!=", "<>": "!=", "!==": "!=", "===": "==", "=!": "!=", "=": "==",
    "≠": "!=",
}  # fmt: skip
_BOUND = ("<-", "=>", ":=", "==", "->", "≔", "::=", "===", "<=")


def other_signs(stop: Stop) -> Slip | None:
    """What to write for a run of signs."""
    return (
        _doubled(stop)
        or _defined(stop)
        or _compared(stop)
        or _separator(stop)
        or _default(stop)
        or _among(stop)
        or _arguments(stop)
    )


def _doubled(stop: Stop) -> Slip | None:
    """`a and and b`, `x == ()` and `let n = rank(x) in`."""
    place = len(stop.text)
    twice = re.search(r"\b(and|or|where|in|then|else|let|require)(\s+)\1\s*\Z", stop.text)
    if twice is not None:
        return written(stop, f"it stands there twice: leave one `{twice[1]}` out", twice.end(1), twice.end(), " ")
    empty = re.search(r"(?:[=!<>,(]|\bin)\s*(\()\s*\Z", stop.text)
    if stop.found == ")" and empty is not None:
        return written(stop, "an empty list is `[]`", empty.start(1), place + 1, "[]")
    if (
        stop.found == "in"
        and re.search(r"\blet\s+\w+\s*=[^\n]*\Z", stop.text)
        and re.match(r"in\s*(#.*)?(\n|\Z)", stop.rest)
    ):
        return written(stop, "leave `in` out: a `let` holds in the whole rule or operator", place, place + 2, "")
    return None


def _run(stop: Stop) -> tuple[int, int]:
    """The signs that the place lies in or stands behind."""
    place = len(stop.text)
    begin = place
    while begin and _RUN.fullmatch(stop.whole, begin - 1, begin):
        begin -= 1
    match = _RUN.match(stop.whole, begin)
    return begin, match.end() if match is not None else begin


def _defined(stop: Stop) -> Slip | None:
    """`y[i] <- x[i]` and `y[i] => x[i]`."""
    begin, end = _run(stop)
    sign = stop.whole[begin:end]
    if sign not in _BOUND or not in_body(stop):
        return None
    head = re.search(r"(?:\A|[{\n])\s*(?:(?:view|scan)\s+)?\w+\s*\[[^\[\]]*\]\s*\Z", stop.text[:begin])
    named = re.search(r"(?:\A|[{\n])\s*let\s+\w+\s*\Z", stop.text[:begin])
    if head is None and named is None:
        return None
    return written(stop, "write `=`", begin, end, "=")


def _compared(stop: Stop) -> Slip | None:
    begin, end = _run(stop)
    sign = stop.whole[begin:end]
    if sign not in _COMPARED or not re.search(r"[\w)\]\"]\s*\Z", stop.text[:begin]):
        return None
    condition = re.search(r"\b(require|where|means|if|predicate\s+\w+\([^()]*\)\s*=)\b[^{}]*\Z", stop.text[:begin])
    if condition is None or (in_rule(stop) and not re.search(r"\bwhere\b", stop.text)):
        return None
    if sign == "=" and "means" not in condition[0]:
        return None  # `==` is told where a comparison may stand
    new = _COMPARED[sign]
    return written(stop, f"write `{new}`", begin, end, new)


def _separator(stop: Stop) -> Slip | None:
    """`x[n; k]` and `ceil_div(K; 2)`."""
    place = len(stop.text)
    at = place if stop.found == ";" else len(stop.text.rstrip()) - 1
    if at < 0 or stop.whole[at] != ";":
        return None
    bracket = _enclosing(stop.text, at)
    if bracket < 0:
        return None
    called = re.search(r"([A-Za-z_]\w*)\s*\Z", stop.text[:bracket])
    of_values = stop.whole[bracket] == "[" or (called is not None and called[1][0].islower())
    if not of_values or (re.match(r"operator\b[^{]*\Z", stop.text[:bracket].lstrip()) and stop.whole[bracket] == "("):
        return None
    where = stop.between(at, at + 1)
    if re.match(r";\s*[)\]]", stop.whole[at:]):
        return Slip(edit("leave it out", Edit(where, "")), where)
    return Slip(edit("parts stand between commas: write `,`", Edit(where, ",")), where, "`;` cannot stand here")


def _enclosing(text: str, at: int) -> int:
    depth = 0
    for place in range(at - 1, -1, -1):
        depth += (text[place] in ")]") - (text[place] in "([")
        if depth < 0:
            return place
        if text[place] in "{}":
            return -1
    return -1


def _default(stop: Stop) -> Slip | None:
    """`b else 0`, `(b[j] : 0)` and `b[j] else)`."""
    if not in_body(stop):
        return None
    place = len(stop.text)
    bare = re.search(r"(?<![\w.\]])([a-z_]\w*)\s*\Z", stop.text)
    if stop.found == "else" and bare is not None and "THEN" not in stop.accepted:
        shape = re.search(rf"\b{bare[1]}\s*:\s*\w+\s*\[([^\]]*)\]", stop.before)
        if shape is not None:
            indices = ", ".join(part.strip().lower() for part in shape[1].split(","))
            said = f"`else` stands behind the read of an element: write `{bare[1]}[{indices}] else ...`"
            return Slip(advice(said), stop.between(*bare.span(1)), f"`{bare[1]}` is a tensor without indices")
    missing = re.search(r"\belse\s*\Z", stop.text)
    if missing is not None and stop.found in (")", "]", ",", "}", "the end of the text"):
        end = missing.start() + 4
        said = "write the value for what is not there: `else 0`"
        return Slip(advice(said), stop.between(missing.start(), end), "nothing stands behind `else`")
    read = re.search(r"\(\s*(\w+)\[[^\[\]]*\]\s*\Z", stop.text)
    value = re.match(r"[:,]\s*-?[\d.]+\s*\)", stop.rest)
    if read is not None and value is not None:
        blank = "" if stop.text[-1:].isspace() else " "
        return written(stop, "write `else`", place, place + 1, f"{blank}else")
    wanted = re.search(r"\brequire\b[^\n{}]*\Z", stop.text)
    if stop.found == "else" and wanted is not None and re.match(r"else\s+fail\b", stop.rest):
        return written(stop, "write `or`", place, place + 4, "or")
    return _reason(stop)


def _reason(stop: Stop) -> Slip | None:
    """`fail "why"` and `fail(why not)`."""
    place = len(stop.text)
    text = re.match(r'"[^"\n]*"', stop.rest)
    if text is not None and re.search(r"\bfail\s*\Z", stop.text):
        begin = len(stop.text.rstrip())
        return written(stop, f"write `fail({text[0]})`", begin, place + text.end(), f"({text[0]})")
    inside = re.search(r"\bfail\s*\(([^()\"\n]*)\Z", stop.text)
    rest = re.match(r"[^()\"\n]*(?=\))", stop.rest)
    if inside is not None and rest is not None and inside[1].strip():
        new = f'"{(inside[1] + rest[0]).strip()}"'
        message = "the reason of `fail` is a text"
        return written(stop, f"write `fail({new})`", inside.start(1), place + rest.end(), new, message)
    return None


def _among(stop: Stop) -> Slip | None:
    """`require K in [1, 2]`, `mode in ["a", "b"]` and `b in range(c)`."""
    line = stop.text.rfind("\n") + 1
    found = re.compile(
        r"([A-Za-z_]\w*(?:\([^()]*\))?)\s+(not\s+)?in\s*(?:([\[({][^\[\](){}\n]*[\])}])|range\(([^(),\n]+)\))"
    ).search(stop.whole, line)
    if found is None or not found.start() <= len(stop.text) <= found.end():
        return None
    conditions = r"\b(?:require|where|if|means|predicate)\b|\bfunction\b"
    if re.search(conditions, stop.whole[line : found.start()]) is None and not in_rule(stop):
        return None
    if re.search(r"\b(?:sum|max|min|prod|mean|any|all|first|for)\s*\(?\s*\Z", stop.whole[line : found.start()]):
        return None
    if found[4]:
        new = f"0 <= {found[1]} and {found[1]} < {found[4].strip()}"
    else:
        new = f"{'not ' * bool(found[2])}contains([{found[3][1:-1]}], {found[1]})"
    return written(stop, f"write `{new}`", *found.span(), new)


def _arguments(stop: Stop) -> Slip | None:
    """`ceil_div(a = K, b = 2)`, `cast<int32>(x)`, `prod[K, 2]` and `std::max(a, b)`."""
    place = len(stop.text)
    generic = re.compile(r"\b([a-z]\w*)\s*<\s*(\w+)\s*>\s*\(").search(stop.whole, stop.text.rfind("\n") + 1)
    if generic is not None and generic.start() <= place <= generic.end() and in_body(stop):
        end = closing(stop.whole, generic.end() - 1)
        if end > 0:
            new = f"{generic[1]}({stop.whole[generic.end() : end - 1]}, {generic[2]})"
            return written(stop, f"write `{new}`", generic.start(), end, new)
    scoped = _scoped(stop)
    if scoped is not None:
        return scoped
    named = re.search(r"\b([a-z_]\w*)\(\s*(?:[^();]*,\s*)?(\w+)\s*\Z", stop.text)
    if stop.found == "=" and named is not None and not re.match(r"==", stop.rest) and in_body(stop):
        bracket = stop.text.index("(", named.start())
        end = closing(stop.whole, bracket)
        inner = stop.whole[bracket + 1 : end - 1]
        if end > 0 and "(" not in inner and re.search(r"axis|axes|dim", inner) is None:
            new = re.sub(r"\b\w+\s*=(?!=)\s*", "", inner)
            said = f"functions take their arguments by place: write `{named[1]}({new})`"
            return written(stop, said, bracket + 1, end - 1, new)
    return None


def _scoped(stop: Stop) -> Slip | None:
    """`std::max(a, b)` and `ai.onnx::Mul(a, b)`."""
    scope = re.search(r"([A-Za-z_]\w*)\s*(?:::?\s*)?\Z", stop.text)
    if scope is None or re.search(r"\bonnx\s+\Z", stop.text[: scope.start()]):
        return None
    colons = re.compile(r"(?:\.\w+)*\s*::\s*[A-Za-z_]\w*\s*\(").match(stop.whole, scope.end(1))
    if colons is None or len(stop.text) > colons.end():
        return None
    dotted = re.search(r"[\w.]*\Z", stop.text[: scope.end(1)])
    begin = dotted.start() if dotted is not None else scope.start(1)
    end = stop.whole.index("::", scope.end(1)) + 2
    prefix = stop.whole[begin:end]
    what = "operators stand without their domain" if in_rule(stop) else "functions stand alone"
    return written(stop, f"{what}: leave `{prefix}` out", begin, end, "", f"`{prefix}` cannot stand here")
