"""The inputs, attributes and outputs of an operator, each compared with the form that it has."""

from __future__ import annotations

import re

from smartmem_rules.language.fixes import Edit, advice, edit
from smartmem_rules.language.parsing.slips.slip import Slip, written
from smartmem_rules.language.parsing.stops import Stop
from smartmem_rules.language.vocabulary import ATTRIBUTE_KINDS, DTYPE_WORDS

_TYPE = r"\w+\s*\[[^\[\]]*\]"
_LISTS = {"int": "ints", "integer": "ints", "int64": "ints", "int32": "ints", "float": "floats", "double": "floats"}
_LISTS |= {"float32": "floats", "str": "strings", "string": "strings", "ints": "ints", "floats": "floats"}
_LISTS |= {"strings": "strings", "i64": "ints"}


def signature_parts(stop: Stop) -> Slip | None:
    """What to write for the part of a signature that the place lies in."""
    if re.match(r"operator\b[^{]*\Z", stop.before) is None:
        return None
    name = _name(stop)
    if name is not None:
        return name
    if "(" not in stop.before:
        return _variables(stop)
    begin, end = _part(stop)
    outputs = "->" in stop.whole[:begin]
    return (
        _unclosed(stop)
        or (_output(stop, begin, end) if outputs else None)
        or (None if outputs else _arrow(stop))
        or (_input(stop, begin, end) if not outputs and ";" not in stop.text[:begin] else None)
        or (_attribute(stop, begin, end) if not outputs and ";" in stop.text[:begin] else None)
    )


def _part(stop: Stop) -> tuple[int, int]:
    """Where the part begins and ends, without blanks."""
    text, place = stop.whole, len(stop.text)
    depth, begin = 0, place
    while begin:
        sign = text[begin - 1]
        if text[begin - 2 : begin] == "->" or (depth == 0 and sign in ",;("):
            break
        depth += (sign in ")]}") - (sign in "([{")
        begin -= 1
    depth, end = 0, place
    while end < len(text):
        sign = text[end]
        if sign in "{\n" or text[end : end + 2] == "->" or (depth <= 0 and sign in ",;)"):
            break
        depth += (sign in "([") - (sign in ")]")
        end += 1
    begin += len(text[begin:]) - len(text[begin:].lstrip())
    return begin, max(begin, begin + len(text[begin:end].rstrip()))


def _name(stop: Stop) -> Slip | None:
    """`operator my.ops::Affine(...)` and `operator "Affine"(...)`."""
    place = len(stop.text)
    head = re.compile(r"operator\s+(\"?)([\w./:-]+?)\"?(?=[\s(<\[{]|:\s|$)").match(stop.whole, place - len(stop.before))
    if head is None or not (head[1] or re.search(r"[.:/]", head[2])) or place > head.end():
        return None
    domain, name = re.fullmatch(r"(?:(.*)(?:::|[./:]))?(\w*)", head[2]).groups()  # type: ignore[union-attr]
    where = stop.between(head.start(1), head.end())
    if not name:
        return None
    said = f"a name is one word: write `{name}`"
    said += f", and the domain in a clause: `onnx {domain.strip(':')}::{name} ;`" if domain else ""
    return Slip(edit(said, Edit(where, name)), where)


def _variables(stop: Stop) -> Slip | None:
    """`<typename T>`, `<float T>` and `<T extends float>`."""
    begin = stop.text.rfind("<")
    inner = re.compile(r"<([^<>()\n]*)>").match(stop.whole, begin) if begin >= 0 else None
    if inner is None:
        return None
    words = [one for one in re.findall(r"\w+", inner[1]) if one.lower() not in ("typename", "class", "extends", "type")]
    names = [one for one in words if one not in DTYPE_WORDS]
    classes = [one for one in words if one in DTYPE_WORDS]
    if (
        len(names) != 1
        or names[0].lower() in ("in", "is", "of")
        or "=" in inner[1]
        or not re.search(r"\s", inner[1].strip())
    ):
        return None
    new = f"<{names[0]}: {' | '.join(classes) or 'number'}>"
    message = f"`{inner[1].strip()}` is no variable of dtypes"
    return written(stop, f"write `{new}`", *inner.span(), new, message)


def _unclosed(stop: Stop) -> Slip | None:
    """`x: T[*S, K, w: T[K]`, where the next input stands inside of the brackets of a shape."""
    begun = re.search(r"(\[)([^\[\]()]*?)(\s*[,;)]\s*(?:const\s+)?[a-z]\w*\s*)\Z", stop.text)
    if stop.found != ":" or begun is None:
        return None
    at = begun.end(2)
    shown = stop.whole[begun.start(1) : at]
    fix = edit(f"write `{shown}]`", Edit(stop.between(at, at), "]"))
    return Slip(fix, stop.between(*begun.span(1)), "this `[` is not closed")


def _arrow(stop: Stop) -> Slip | None:
    """What stands before the outputs in place of `->`."""
    place = len(stop.text)
    if re.match(r"->|>", stop.rest) and (open_at := stop.text.rfind("(")) >= 0 and ")" not in stop.text[open_at:]:
        end = len(stop.text.rstrip().removesuffix("-").rstrip())
        fix = edit("`)` closes the inputs and attributes: write `) ->`", Edit(stop.between(end, end), ")"))
        return Slip(fix, stop.between(open_at, open_at + 1), "this `(` is not closed")
    sign = re.match(r"(-\s*>|-+>|=+>|~>|returns?\b|gives\b|to\b|⟶|→)\s*(?=[\w(])", stop.rest)
    if sign is not None and stop.text.rstrip().endswith(")"):
        return written(stop, "write `->`", place, place + sign.end(1), "->")
    return None


def _input(stop: Stop, begin: int, end: int) -> Slip | None:
    part = stop.whole[begin:end]
    optional = (
        re.fullmatch(rf"(?:optional|maybe|Optional)\s+(?P<name>\w+)\s*:\s*(?P<type>{_TYPE})", part)
        or re.fullmatch(
            rf"(?P<name>\w+)\s*:\s*(?:Optional|optional|Option|Maybe)\s*[\[<(]\s*(?P<type>{_TYPE})\s*[\]>)]", part
        )
        or re.fullmatch(rf"(?P<name>\w+)\s*:\s*(?P<type>{_TYPE})\s*(?:=\s*\w+|or\s+none|\|\s*[Nn]one)", part)
    )
    if optional is not None:
        new = f"{optional['name']}: {optional['type']}?"
        message = "an input that may be absent has `?` behind its type"
        return written(stop, f"write `{new}`", begin, end, new, message)
    marked = re.fullmatch(r"(\w+)\s*:\s*(\w+)\s*\?\s*(\[[^\[\]]*\])", part)
    if marked is not None:
        new = f"{marked[1]}: {marked[2]}{marked[3]}?"
        return written(stop, f"`?` stands behind the shape: write `{new}`", begin, end, new)
    constant = re.fullmatch(rf"(const)\s+(\w+)\s*:\s*({_TYPE})\??", part)
    if constant is not None:
        message = "a `const` input has a kind, and a tensor has a shape"
        said = f"write `{constant[2]}: {constant[3]}` for a tensor, `const {constant[2]}: tensor` for one that is known"
        return Slip(advice(f"{said} when the model is imported"), stop.between(begin, end), message)
    angles = re.fullmatch(r"(\w+)\s*:\s*(\w+)\s*[<({]([*\w\s,]*)[>)}]", part)
    if angles is not None:
        new = f"{angles[1]}: {angles[2]}[{angles[3]}]"
        return written(stop, f"extents stand in square brackets: write `{new}`", begin, end, new)
    several = re.fullmatch(r"(\w+)\s*:\s*(\w+)((?:\s*\[[^\[\]]*\]){2,})", part)
    if several is not None:
        extents = ", ".join(one.strip() for one in re.findall(r"\[([^\[\]]*)\]", several[3]))
        new = f"{several[1]}: {several[2]}[{extents}]"
        return written(stop, f"all extents stand in one pair of brackets: write `{new}`", begin, end, new)
    typed = re.fullmatch(rf"(\w+)\s*(?:=|::|-|as|of)?\s*({_TYPE})", part)
    if typed is not None and typed[1] not in DTYPE_WORDS:
        new = f"{typed[1]}: {typed[2]}"
        return written(stop, f"the type follows the name and a colon: write `{new}`", begin, end, new)
    if re.fullmatch(r"[a-z_]\w*", part):
        return Slip(advice(f"write `{part}: T[*S]`"), stop.between(begin, end), f"the input `{part}` has no type")
    return None


def _attribute(stop: Stop, begin: int, end: int) -> Slip | None:
    part = stop.whole[begin:end]
    listed = re.fullmatch(
        r"(\w+)\s*:\s*(?:(?:list|List|vector|Sequence|array|tuple|Tuple)\s*[\[<(]\s*(\w+)\s*[\]>)]|\[\s*(\w+)\s*\]"
        r"|(\w+)\s*\[\s*\d*\s*\]|(\w+)\s*\*)(\s*=.*)?",
        part,
        re.DOTALL,
    )
    kind = _LISTS.get(next(filter(None, listed.groups()[1:5]), "")) if listed is not None else None
    if listed is not None and kind is not None:
        new = f"{listed[1]}: {kind}"
        last = begin + (listed.start(6) if listed[6] else len(part))
        return written(stop, f"write `{new}`", begin, last, new, "there is no such kind of attribute")
    called = re.fullmatch(r"(\w+)\s*:\s*(\w+)\s*\(([^()]*)\)", part)
    if called is not None and called[2] in ATTRIBUTE_KINDS:
        new = f"{called[1]}: {called[2]} = {called[3]}"
        return written(stop, f"write `{new}`", begin, end, new)
    choice = re.fullmatch(
        r"(\w+)\s*:\s*\w*\s*[\[({<|]*\s*(\"[^\"]*\"\s*[,|]\s*)+\"[^\"]*\"\s*[\])}>]*\s*(=\s*\"[^\"]*\")?", part
    )
    if choice is not None:
        texts = re.findall(r'"([^"]*)"', part)
        default = choice[3] or f'= "{texts[0]}"'
        new = f"{choice[1]}: string {default}"
        known = list(dict.fromkeys(texts))
        said = f"write `{new}`, and `require contains([{', '.join(f'{chr(34)}{one}{chr(34)}' for one in known)}]"
        return Slip(edit(f"{said}, {choice[1]})` in the braces", Edit(stop.between(begin, end), new)),
                    stop.between(begin, end), "a kind of attribute has no choices")  # fmt: skip
    tensor = re.fullmatch(rf"(\w+)\s*:\s*({_TYPE})\s*\??", part)
    if tensor is not None:
        message = f"`{tensor[1]}` is a tensor, and behind `;` stand attributes"
        said = f"tensors are inputs: write `{part}` before the `;`, behind a comma"
        return Slip(advice(said), stop.between(begin, end), message)
    return _default(stop)


def _default(stop: Stop) -> Slip | None:
    """`axes: ints = 0, 1`, `(0, 1)` and `scale: float = 1,5`."""
    place = len(stop.text)
    more = re.match(r"-?\d+(?:\s*,\s*-?\d+)*(?=\s*[,;)])", stop.rest)
    begun = re.search(r"(\w+)\s*:\s*(\w+)\s*=\s*(-?\d+(?:\s*,\s*-?\d+)*)\s*,(\s*)\Z", stop.text)
    if begun is None or more is None:
        return None
    if begun[2] in ("float", "double") and not begun[4] and re.fullmatch(r"\d+", more[0]):
        new = f"{begun[3]}.{more[0]}"
        return written(stop, f"write `{new}`", begun.start(3), place + more.end(), new)
    new = f"[{begun[3]}, {more[0]}]"
    return written(stop, f"a list stands in square brackets: write `{new}`", begun.start(3), place + more.end(), new)


def _output(stop: Stop, begin: int, end: int) -> Slip | None:
    place = len(stop.text)
    part = stop.whole[begin:end]
    if re.fullmatch(r"[a-z_]\w*", part):
        return Slip(advice(f"write `{part}: T[*S]`, with the shape that it has"), stop.between(begin, end),
                    f"the output `{part}` has no type")  # fmt: skip
    typed = re.fullmatch(rf"(\w+)\s*(?:=|::|as|of)?\s*({_TYPE})", part)
    if typed is not None and ":" not in part.partition("[")[0]:
        new = f"{typed[1]}: {typed[2]}"
        return written(stop, f"the type follows the name and a colon: write `{new}`", begin, end, new)
    ended = stop.text.rstrip().endswith("]")
    if stop.found == "?" and ended:
        return written(stop, "an output is always there: leave `?` out", place, place + 1, "")
    if stop.found == ";" and ended and re.match(r";\s*\{", stop.rest):
        return written(stop, "leave `;` out", place, place + 1, "")
    if stop.found == ";" and ended and re.match(r";\s*\w+\s*:", stop.rest):
        return written(stop, "outputs stand between commas: write `,`", place, place + 1, ",")
    if stop.found in (":", "(") and ended and re.match(r"[:(][ \t]*(#.*)?\n", stop.rest):
        rest = stop.whole[place + 1 :]
        closed = rest.count("}") > rest.count("{")
        last = len(stop.whole.rstrip())
        closing = [] if closed else [Edit(stop.between(last, last), "\n}")]
        return Slip(edit("the clauses stand in braces: write `{`", Edit(stop.between(place, place + 1), "{"), *closing))
    return None
