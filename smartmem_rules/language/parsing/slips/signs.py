"""Signs of mathematics (powers, products, roots, sums and bars) and of bits."""

from __future__ import annotations

import re

from smartmem_rules.language.parsing.slips.slip import Slip, all_of, told, written
from smartmem_rules.language.parsing.stops import Stop

_POWERS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_SIGNS = {
    "·": "*", "⋅": "*", "×": "*", "∗": "*", "÷": "/", "Σ": "sum", "∑": "sum", "Π": "prod", "∏": "prod",
    "∞": "inf", "∧": "and", "∨": "or", "¬": "not ", "π": "3.141592653589793",
}  # fmt: skip
_QUOTED = r"[“”„‟«»‘’‚‛`]+([^“”„‟«»‘’‚‛`\"'\n]*)[“”„‟«»‘’‚‛`\"']+"
_BITS = {"&": "bit_and", "|": "bit_or", "^": "bit_xor", "<<": "shift_left", ">>": "shift_right"}
_OPERAND = r"[A-Za-z_]\w*(?:\[[^\[\]]*\]|\([^()]*\))?|\d+(?:\.\d+)?|\([^()]*\)"
_GLUED = re.compile(r"(?<![\w.])(?!0[xXbB])(\d+(?:\.\d+)?)(?![eE](?:[+-]?\d|\b))(?=[A-Za-z_(])")


def signs(stop: Stop) -> Slip | None:
    """What to write for a sign of mathematics."""
    place, rest = len(stop.text), stop.rest
    power = re.match(r"[⁰¹²³⁴⁵⁶⁷⁸⁹]+", rest)
    if power is not None:
        new = f"** {power[0].translate(_POWERS)}"
        return written(stop, f"write `{new}`", place, place + power.end(), f" {new}")
    if rest[:1] in _SIGNS:
        new = _SIGNS[rest[0]]
        return written(stop, f"write `{new.strip()}`", place, place + 1, new)
    quoted = re.match(_QUOTED, rest)
    if quoted is not None:
        said = f'text stands between double quotes: write `"{quoted[1]}"`'
        return Slip(all_of(stop, said, _QUOTED, r'"\1"', place))
    root = re.match(rf"√\s*({_OPERAND})", rest)
    if root is not None:
        new = f"sqrt({root[1].strip('()') if root[1][0] == '(' else root[1]})"
        return written(stop, f"write `{new}`", place, place + root.end(), new)
    bars = re.match(r"\|([^|\n]+)\|", rest)
    if stop.found == "|" and bars is not None and re.search(r"[=+*/(,-]\s*$", stop.text):
        return written(stop, f"write `abs({bars[1]})`", place, place + bars.end(), f"abs({bars[1]})")
    return _bits(stop) or _all_bits(stop) or _products(stop)


def _bits(stop: Stop) -> Slip | None:
    """`a & b`, `a << b` and others of whole numbers."""
    place = len(stop.text)
    sign = re.match(r"<<|>>|[&|^](?![&|=])", stop.whole[place - 1 : place + 1]) or re.match(
        r"[&|^](?![&|=])", stop.rest
    )
    if sign is None:
        return None
    begin = place - (len(sign[0]) - 1)
    end = begin + len(sign[0])
    first = _operand_begin(stop.whole[:begin])
    last = _operand_end(stop.whole, end)
    left, right = stop.whole[first:begin].strip(), stop.whole[end:last].strip()
    if not left or not right:
        return None
    known = re.search(r"\b(?:let|require|where)\b[^\n]*$", stop.text) or not re.match(r"operator\b", stop.before)
    if known:
        new = _of_known(left, sign[0], right)
        said = "numbers that are known at import have no bits: write `{}`"
        return None if new is None else written(stop, said.format(new), first, last, new)
    kinds = {_kind(stop.before, one) for one in (left, right)} - {""}
    whole = any(_declared(stop.before, one) for one in (left, right)) or sign[0] != "^"  # else `^` is a power
    if kinds and kinds <= {"int"} and whole:
        left, right = (re.sub(r"\b0[xX][0-9a-fA-F]+", lambda one: str(int(one[0], 0)), part) for part in (left, right))
        new = f"{_BITS[sign[0]]}({left}, {right})"
        return written(stop, f"write `{new}`", first, last, new)
    if sign[0] == "^" or kinds:
        return None
    word = {"&": "and", "|": "or"}.get(sign[0])
    bits = f"`{_BITS[sign[0]]}({left}, {right})` for the bits of whole numbers"
    return told(f"write `{left} {word} {right}` for truths, {bits}" if word else f"write {bits}")


def _all_bits(stop: Stop) -> Slip | None:
    """`~x[i]`, all bits turned round."""
    place = len(stop.text)
    if stop.found != "~" or re.match(r"operator\b[^{]*\{", stop.before) is None:
        return None
    end = _operand_end(stop.whole, place + 1)
    operand = stop.whole[place + 1 : end].strip()
    declared = _declared(stop.before, operand)
    if not operand or not re.match(r"\w+\[", operand):
        return None
    whole = re.fullmatch(r"(u?)int(\d*)", declared)
    if declared == "bool":
        new = f"not {operand}"
    elif whole is not None and whole[1]:
        new = f"{2 ** int(whole[2]) - 1} - {operand}"
    elif whole is not None:
        new = f"-1 - {operand}"
    else:
        return told(f"write `not {operand}` for a truth, `-1 - {operand}` for the bits of a signed whole number")
    return written(stop, f"write `{new}`", place, end, new)


def _of_known(left: str, sign: str, right: str) -> str | None:
    """The same of extents and attributes, by arithmetic."""
    number = int(right, 0) if re.fullmatch(r"\d+|0[xX][0-9a-fA-F]+", right) else None
    if sign in ("<<", ">>"):
        return f"{left} {'*' if sign == '<<' else '//'} {f'2 ** {right}' if number is None else 2**number}"
    if sign == "&" and number and not number & (number + 1):
        return f"{left} % {number + 1}"
    return None


def _kind(text: str, operand: str) -> str:
    """Whether an operand is a whole number or a truth; empty where its text does not tell, and of numbers."""
    if re.fullmatch(r"0[xX][0-9a-fA-F]+|\d*[02-9]\d*|\d{2,}", operand) or re.match(r"\(*(bit_|shift_)", operand):
        return "int"
    declared = _declared(text, operand)
    return "int" if re.match(r"u?int", declared) else declared


def _declared(text: str, operand: str) -> str:
    """The element type of the tensor that an operand reads, as the signature declares it; empty without one."""
    tensor = re.match(r"\(*([A-Za-z_]\w*)\[", operand)
    word = re.search(rf"\b{tensor[1]}\s*:\s*(\w+)", text) if tensor is not None else None
    if word is None:
        return ""
    of_class = re.search(rf"[<,]\s*{word[1]}\s*:\s*(\w+)", text.partition("(")[0])
    return of_class[1] if of_class is not None else word[1] if len(word[1]) > 1 else ""


def _operand_begin(text: str) -> int:
    """Where the operand begins that a text ends in: a name or number with the brackets behind it."""
    at = len(text.rstrip())
    while at and text[at - 1] in ")]":
        depth = 0
        while at:
            at -= 1
            depth += (text[at] in ")]") - (text[at] in "([")
            if depth == 0:
                break
    return at - len(re.search(r"[\w.]*$", text[:at])[0])  # type: ignore[index]


def _operand_end(text: str, begin: int) -> int:
    """Where the operand ends that begins at a place, behind blanks."""
    at = re.compile(r"\s*[\w.]*").match(text, begin).end()  # type: ignore[union-attr]
    while text[at : at + 1] in ("(", "["):
        depth = 0
        for place in range(at, len(text)):
            depth += (text[place] in "([") - (text[place] in ")]")
            if depth == 0:
                at = place + 1
                break
        else:
            return at
    return at


def _products(stop: Stop) -> Slip | None:
    """`2x`, which reads as a number and the beginning of another equation."""
    if re.match(r"(operator|function|predicate|let)\b", stop.before) is None:
        return None
    begin = max(stop.text.rfind("\n", 0, max(stop.text.rfind("\n"), 0)), 0)
    match = _GLUED.search(stop.whole, begin)
    if match is None or match.start() > len(stop.text):
        return None
    said = f"a product has its sign: write `{match[1]} * ...`"
    return written(stop, said, *match.span(1), f"{match[1]} * ", f"nothing joins `{match[1]}` and what follows it")
