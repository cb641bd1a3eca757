"""The sides of rules, with parts that only other languages have."""

from __future__ import annotations

import re

from smartmem_rules.language.fixes import Edit, advice, edit
from smartmem_rules.language.parsing.slips.places.pieces import closing, in_rule, opening
from smartmem_rules.language.parsing.slips.slip import Slip, written
from smartmem_rules.language.parsing.stops import Stop, without_closed

_ARROW = re.compile(
    r"(?<=[\w)])[^\S\n]*\n?[^\S\n]*(=\s+>|-+\s*>+|~+>|>=|\bto\b|\binto\b|\bbecomes\b|\|->|:=>?|\bthen\b)\s*(?=[\w(])"
)
_OPERATOR = re.compile(r"[A-Z]\w*")


def rule_sides(stop: Stop) -> Slip | None:
    """What to write in the sides of a rule."""
    if not in_rule(stop) or re.search(r"\bwhere\b", stop.text):
        return _arrow(stop) if in_rule(stop) and "=>" not in stop.whole else None
    return (
        _named(stop)
        or _led(stop)
        or _alternatives(stop)
        or _operand(stop)
        or _attributes(stop)
        or _attributes_elsewhere(stop)
        or _arrow(stop)
    )


def _arrow(stop: Stop) -> Slip | None:
    """`LEFT --> RIGHT`, `LEFT >= RIGHT` and `LEFT to RIGHT`."""
    if not re.match(r"rewrite\b", stop.before) or re.search(r"(?<![<=])=>", stop.whole):
        return None
    begin = len(stop.text) - len(stop.before)
    head = re.compile(r"rewrite\s+\w+\s+in\s+\w+").match(stop.whole, begin)
    if head is None:
        return None
    sign = _ARROW.search(stop.whole, head.end())
    if sign is None or sign.start(1) > len(stop.text):
        return None
    said = "write `=>`, or `<=>` for a rule of both directions"
    led = re.compile(r"\s*(if|match|replace|from|when)\s+(?=[A-Z(])").match(stop.whole, head.end())
    first = [Edit(stop.between(led.start(1), led.end()), "")] if led is not None else []
    where = stop.between(*sign.span(1))
    return Slip(edit(said, *first, Edit(where, "=>")), where, f"`{sign[1]}` cannot stand here")


def _named(stop: Stop) -> Slip | None:
    """`m = Mul(x, c) => ...`, `m: Mul(x, c)`, `m @ Mul(x, c)` and `Mul(x, c) as m`."""
    place = len(stop.text)
    name = re.search(r"(?<![\w.;=])([a-z_]\w*)\s*(?:=|:|@|:=)?\s*\Z", stop.text)
    sign = re.match(r"(?:(=|:=|:|@)\s*)(?=[A-Z]\w*\s*\()", stop.rest)
    inside = opening_of(stop.text) >= 0 and ":" not in (sign[1] if sign is not None else ":")
    if name is not None and sign is not None and not inside and not re.search(r";[^()]*\Z", stop.text):
        if re.search(r"\b(rewrite\s+\w+\s+in|rewrite)\s+\Z", stop.text[: name.start(1)]):
            return None
        end = place + sign.end()
        close = closing(stop.whole, stop.whole.index("(", end))
        term = stop.whole[end:close]
        said = f"leave `{stop.whole[name.start(1) : end].strip()}` out: a part of a pattern has a name by a line "
        change = Edit(stop.between(name.start(1), end), "")
        return Slip(edit(f"{said}`let {name[1]} = {' '.join(term.split())}` behind the sides", change),
                    stop.between(name.start(1), end))  # fmt: skip
    alias = re.match(r"as\s+([a-z_]\w*)", stop.rest)
    if alias is not None and stop.text.rstrip().endswith(")"):
        said = f"leave it out: a part of a pattern has a name by a line `let {alias[1]} = ...` behind the sides"
        return written(stop, said, place, place + alias.end(), "")
    return None


def _led(stop: Stop) -> Slip | None:
    """`match Mul(x, c) => ...`."""
    word = re.search(
        r"(?:\n|\bin\s+\w+\s+|=>\s*)\s*(match|replace|rewrite|pattern|lhs|rhs|left|right|with|return|if|from|when)\s*:?\s*\Z",
        stop.text,
    )
    if word is None or re.match(r"[A-Z(]", stop.rest) is None or re.search(r"(?<![<=])=>", stop.whole) is None:
        return None
    message = "a side begins with its operator"
    return written(stop, f"leave `{word[1]}` out", word.start(1), len(stop.text), "", message)


def _alternatives(stop: Stop) -> Slip | None:
    """`Mul|Div(x, c)`."""
    place = len(stop.text)
    first = re.search(r"(?<![(|\w]\s)(?<![(|\w])([A-Z]\w*)\s*\Z", stop.text)
    rest = re.match(r"(?:\s*(?:\|\|?|/|\bor\b)\s*[A-Z]\w*)+(?=\s*\()", stop.rest)
    if first is None or rest is None:
        return None
    new = f"({' | '.join(_OPERATOR.findall(first[1] + rest[0]))})"
    begin = first.start(1)
    return written(stop, f"alternatives stand in parentheses: write `{new}`", begin, place + rest.end(), new)


def _operand(stop: Stop) -> Slip | None:
    """`x: float`, `const c`, `Constant c` and what stands behind `;` without a name."""
    place = len(stop.text)
    typed = re.match(r":\s*([A-Za-z_]\w*)(\s*\[[^\[\]\n]*\])?(?=\s*[,);])", stop.rest)
    name = re.search(r"[(,]\s*([a-z_]\w*)\s*\Z", stop.text)
    if stop.found == ":" and typed is not None and name is not None and ";" not in _inner(stop):
        said = f"operands have no types: leave `{typed[0]}` out; a guard asks for one, `where dtype({name[1]}) == ...`"
        return written(stop, said, len(stop.text.rstrip()), place + typed.end(), "")
    word = re.search(r"[(,]\s*(const|constant|Const|Constant|tensor|Tensor|any|Any|var|weight)\s+\Z", stop.text)
    named = re.match(r"[a-z_]\w*", stop.rest)
    if word is not None and named is not None:
        guard = f", and the guard `where constant({named[0]})`" if word[1].lower().startswith("const") else ""
        said = f"an operand is a plain name: write `{named[0]}`{guard}"
        return written(stop, said, word.start(1), place + named.end(), named[0])
    bare = re.search(r";\s*@?\s*([A-Za-z_]\w*)?\s*\Z", without_closed(stop.text))
    inner = re.search(r";\s*(@?)\s*(\w*)\s*\Z", stop.text)
    if bare is None or inner is None or stop.found not in (")", ",", ";"):
        return None
    if inner[1] and not inner[2]:
        said = "all attributes together have a name, too: write `@rest`"
        return written(stop, said, inner.start(1), inner.end(1), "@rest")
    begin = stop.text.rindex(";")
    operator = re.search(r"([A-Z]\w*)\s*\Z", stop.text[: max(opening_of(stop.text), 0)])
    shown = operator[1] if operator is not None else "Op"
    word_there = inner[2]
    if not word_there:
        return None
    where = stop.between(inner.start(2), inner.end(2))
    message = f"`{word_there}` behind `;` names no attribute"
    if word_there in ("rest", "attrs", "attributes", "kwargs", "others"):
        return Slip(edit(f"all attributes together are `@{word_there}`", Edit(stop.between(begin + 1, inner.end(2)),
                    f" @{word_there}")), where, message)  # fmt: skip
    if stop.found in (")", ",") and re.search(r"\([^()=]*;\s*[a-z]\w*\s*\Z", stop.text):
        return None  # all are operands
    if word_there[:1].isupper() or stop.found == ")":
        said = f"operands stand between commas, attributes behind `;` with their names: `{shown}(x, {word_there})` or "
        return Slip(advice(f"{said}`{shown}(x; NAME = {word_there})`"), where, message)
    return Slip(advice(f"attributes have names: write `{shown}(x; NAME = {word_there})`"), where, message)


def opening_of(text: str) -> int:
    """Where the innermost bracket opens that is open at the end of a text; -1 without one."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += (text[at] in ")]") - (text[at] in "([")
        if depth < 0:
            return at
    return -1


def _inner(stop: Stop) -> str:
    """What stands in the innermost open bracket up to the place."""
    return without_closed(stop.text[opening_of(stop.text) + 1 :])


def _attributes(stop: Stop) -> Slip | None:
    """`axes == a`, `axes = a;)` and a comma at the end."""
    place = len(stop.text)
    doubled = re.search(r"[;,]\s*\w+\s*(=)\s*\Z", stop.text)
    if doubled is not None and stop.found in ("=", "==") and ";" in _inner(stop):
        more = re.compile(r"(?<=[\w\s])==(?=\s*[\w\[\"-])")
        end = stop.whole.find(")", place)
        begin = doubled.start(1)
        changes = [Edit(stop.between(*one.span()), "=") for one in more.finditer(stop.whole, begin, max(end, place))]
        if changes:
            return Slip(edit("an attribute is given by one `=`", *changes), stop.between(begin, place + 1))
    dots = re.match(r"\.\.\.(?!\w)", stop.rest)
    if dots is not None and ";" in _inner(stop) and re.search(r"[;,]\s*\Z", stop.text):
        return written(stop, "all attributes together are `@NAME`: write `@rest`", place, place + dots.end(), "@rest")
    if stop.found == ";" and re.match(r";\s*\)", stop.rest):
        return written(stop, "leave `;` out", place, place + 1, "")
    return None


def _attributes_elsewhere(stop: Stop) -> Slip | None:
    """`Op{axes = a}(x)`, `Op[axes = a](x)` and `Op(x) {axes = a}`."""
    place = len(stop.text)
    ahead = re.compile(r"([A-Z]\w*)\s*(?:\{([^{}\n]*)\}|\[([^\[\]\n]*=[^\[\]\n]*)\]|<([^<>\n]*=[^<>\n]*)>)\s*\(")
    for one in ahead.finditer(stop.whole, stop.text.rfind("\n") + 1):
        if not one.start() <= place <= one.end():
            continue
        end = closing(stop.whole, one.end() - 1)
        inner = one[2] or one[3] or one[4]
        if end > 0 and inner:
            attributes = re.sub(r"(\w)\s*:\s*", r"\1 = ", inner.strip())
            new = f"{one[1]}({stop.whole[one.end() : end - 1]}; {attributes})"
            said = f"attributes stand behind the operands and a `;`: write `{new}`"
            return written(stop, said, one.start(), end, new)
    behind = re.match(r"\{([^{}\n]*)\}", stop.rest)
    text = stop.text.rstrip()
    if behind is not None and text.endswith(")") and opening(text, len(text)) >= 0:
        attributes = re.sub(r"(\w)\s*:\s*", r"\1 = ", behind[1].strip())
        said = f"attributes stand in the parentheses, behind a `;`: write `...; {attributes})`"
        return written(stop, said, len(text) - 1, place + behind.end(), f"; {attributes})")
    return None
