"""Expressions as other languages write them: s-expressions, casts, methods, products, sums over repeated indices."""

from __future__ import annotations

import re

from smartmem_rules.language.fixes import Edit, edit
from smartmem_rules.language.parsing.slips.slip import Slip, told, written
from smartmem_rules.language.parsing.stops import Stop, without_closed
from smartmem_rules.language.vocabulary import ALL_FUNCTIONS, DTYPE_WORDS

_PIECE = re.compile(r"[()]|[^\s()]+")
_SIGILS = "?$%"
_LIBRARIES = (
    "np",
    "numpy",
    "math",
    "torch",
    "jnp",
    "jax",
    "tf",
    "onnx",
    "std",
    "cl",
    "scipy",
    "relay",
    "topi",
    "te",
    "tvm",
)
_CONSTANTS = {"pi": "3.141592653589793", "e": "2.718281828459045", "inf": "inf", "nan": "nan"}
_READ = r"[A-Za-z_]\w*(?:\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]|\([^()]*\))?"
_RANGE = re.compile(r"\b(sum|max|min|prod|mean|any|all)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)\s*(?=[\w(\-])")
_WRONG_RANGES = (
    re.compile(r"0\s*<=\s*(?P<index>\w+)\s*<\s*(?P<end>[^<>=]+)$"),
    re.compile(r"(?P<index>\w+)\s*(?:<=|:|=)\s*(?P<end>[A-Za-z]\w*)$"),
    re.compile(r"(?P<index>\w+)\s*(?:in|=|:)\s*(?:0\s*)?(?:\.\.\.?|:)\s*(?P<end>[A-Za-z]\w*)$"),
)


def called(text: str, count: int) -> list[str]:
    """The first s-expressions of a text as calls: `(Neg (Neg x))` is `Neg(Neg(x))`; fewer where one is none."""
    found: list[str] = []
    stack: list[list[str]] = []
    for piece in _PIECE.findall(text):
        if len(found) == count:
            break
        if piece == "(":
            stack.append([])
            continue
        if piece == ")":
            if not stack or not stack[-1]:
                break
            parts = stack.pop()
            piece = parts[0] if len(parts) == 1 else f"{parts[0]}({', '.join(parts[1:])})"
        piece = piece.lstrip(_SIGILS)
        (stack[-1] if stack else found).append(piece)
    return found


def expressions(stop: Stop) -> Slip | None:
    """How to write a form of an expression that other languages have."""
    return (
        _members(stop)
        or _words(stop)
        or _range(stop)
        or _cast(stop)
        or _conditional(stop)
        or _chain(stop)
        or _product(stop)
    )


def _members(stop: Stop) -> Slip | None:
    """`np.exp(x)`, `math.pi` and `x.astype(float32)`."""
    place = len(stop.text)
    if stop.text.endswith(".") and stop.found in ("output", "outputs"):
        place -= 1
    method = re.compile(r"\.([A-Za-z_]\w*)(\(([^()]*)\))?").match(stop.whole, place)
    owner = re.search(rf"({_READ})$", stop.whole[:place])
    if method is None or owner is None:
        return None
    word, end = method[1], method.end()
    if word[0].isupper():
        return None  # an operator with its domain
    if owner[1] in _LIBRARIES:
        if word in _CONSTANTS:
            return written(stop, f"write `{_CONSTANTS[word]}`", owner.start(1), place + 1 + len(word), _CONSTANTS[word])
        message = f"functions stand without `{owner[1]}.`"
        said = f"write `{word}(...)`" if word in ALL_FUNCTIONS else f"leave `{owner[1]}.` out"
        return written(stop, said, owner.start(1), place + 1, "", message)
    if word in ("astype", "to", "cast", "type") and method[2]:
        dtype = method[3].split(".")[-1].strip("\"' ")
        new = f"cast({owner[1]}, {dtype})"
        return written(stop, f"write `{new}`", owner.start(1), end, new)
    if word in ("dim", "size", "shape") and method[2] and method[3].strip():
        new = f"extent({owner[1]}, {method[3].strip()})"
        return written(stop, f"write `{new}`", owner.start(1), end, new)
    if word == "ndim":
        return written(stop, f"write `rank({owner[1]})`", owner.start(1), place + 5, f"rank({owner[1]})")
    if word in ALL_FUNCTIONS and method[2] is not None:
        new = f"{word}({owner[1]}{', ' if method[3].strip() else ''}{method[3].strip()})"
        return written(stop, f"a function stands before what it is of: `{new}`", owner.start(1), end, new)
    if word in ("output", "outputs") and not method[2]:
        number = re.compile(r"\.outputs?\[(\d+)\]").match(stop.whole, place)
        if number is not None:
            new = f".{number[1]}" if number[1] != "0" else ""
            said = "`Op(...).1` is the second output, `Op(...)` alone the first"
            return written(stop, said, place, number.end(), new)
        return told("`Op(...).1` is the second output, `Op(...)` alone the first")
    return None


def _range(stop: Stop) -> Slip | None:
    """`sum(k <= K) x[k]`, which reads as the call of a function, and `sum(k: K) x[k]`."""
    place = len(stop.text)
    begin = max(stop.text.rfind("\n", 0, stop.text.rfind("\n")), 0)
    for match in _RANGE.finditer(stop.whole, begin):
        if match.start() >= place:
            return None
        for form in _WRONG_RANGES:
            wrong = form.match(match[2].strip())
            if wrong is not None:
                new = f"{wrong['index']} < {wrong['end'].strip()}"
                said = f"write `{match[1]}({new})`: the index runs from 0 to one less than the extent"
                return written(stop, said, *match.span(2), new, "the range of a reduction reads `INDEX < EXTENT`")
    return None


def _words(stop: Stop) -> Slip | None:
    """`sum k < K: x`, `sum[k < K] x`, `if c, x else y`, and arguments with names."""
    place = len(stop.text)
    begin = max(stop.text.rfind("\n", 0, max(stop.text.rfind("\n"), 0)), 0)
    bare = re.compile(r"\b(sum|max|min|prod|mean|any|all)(?:\s+(\w+\s*<\s*\w+)\s*[:,.]?|\[(\w+\s*<\s*\w+)\])").search(
        stop.whole, begin
    )
    if bare is not None and bare.start() < place:
        new = f"{bare[1]}({bare[2] or bare[3]})"
        return written(stop, f"write `{new}`", *bare.span(), new, "the range of a reduction stands in parentheses")
    if (
        stop.found in (",", ":")
        and re.search(r"\bif\b(?!.*\bthen\b)[^\n]*$", stop.text)
        and re.search(r"\belse\b", stop.rest.partition("\n")[0])
    ):
        return Slip(edit("write `then`", Edit(stop.between(len(stop.text.rstrip()), place + 1), " then")))
    latex = re.compile(r"\b(sum|max|min|prod)_\{([^{}\n]*)\}").search(stop.whole, begin)
    if latex is not None and latex.start() < place:
        new = f"{latex[1]}({latex[2]})"
        return written(stop, f"write `{new}`", *latex.span(), new, "the range of a reduction stands in parentheses")
    if (
        stop.found == "is"
        and re.search(r"[\w)\]]\s+$", stop.text)
        and "none" not in stop.rest.partition("\n")[0].lower()
    ):
        negated = re.match(r"is\s+not\b", stop.rest)
        sign = "!=" if negated is not None else "=="
        return written(stop, f"write `{sign}`", place, place + (negated.end() if negated is not None else 2), sign)
    if stop.found == "else" and re.search(r"\bor\s+$", stop.text):
        return written(stop, "write `or` alone", place, place + len("else "), "")
    named = re.search(r"\b([a-z_]\w*)\([^();]*,\s*\w+\s*$", stop.text)
    if stop.found == "=" and named is not None and re.match(r"operator\b[^{]*\{", stop.before):
        return told("functions take their arguments by place; a sum over an axis is `sum(k < K) x[n, k]`")
    return None


def _cast(stop: Stop) -> Slip | None:
    """`(int64) x[i]`."""
    begin = max(stop.text.rfind("\n", 0, stop.text.rfind("\n")), 0)
    match = re.compile(rf"\((\w+)\)\s*({_READ})").search(stop.whole, begin)
    if match is None or match[1] not in DTYPE_WORDS or match.start() >= len(stop.text):
        return None
    new = f"cast({match[2]}, {match[1]})"
    return written(stop, f"write `{new}`", *match.span(), new, "an element is converted by `cast`")


def _conditional(stop: Stop) -> Slip | None:
    """`a if c else b` and `if (c) { a } else { b }`."""
    if stop.found == "if" and re.match(r"(operator|function|predicate|let)\b", stop.before):
        begin = stop.text.rfind("\n") + 1
        line = stop.whole[begin:].partition("\n")[0]
        python = re.search(
            r"(?<![<>=!])=(?!=)\s*((?:(?!\bif\b).)+?)\s+if\s+(.+?)\s+else\s+((?:(?!\bif\b).)+?)\s*$", line
        )
        if python is not None:
            new = f"if {python[2]} then {python[1]} else {python[3]}"
            return written(stop, f"write `{new}`", begin + python.start(1), begin + python.end(3), new)
    generator = re.search(r"\b(sum|max|min|prod|mean|any|all)\s*\(\s*\[?((?:[^()]|\([^()]*\))*?)\s*$", stop.text)
    loop = re.match(r"for\s+(\w+)\s+in\s+range\(\s*(?:0\s*,\s*)?([^(),]+)\)\s*\]?\s*\)", stop.rest)
    loop = loop or re.match(r"for\s+(\w+)\s*(?:<|\bin\b)\s*([^(),<]+)\)", stop.rest)
    if stop.found == "for" and generator is not None and loop is not None:
        body = (
            generator[2]
            if re.search(r"[-+<>=]|\band\b|\bor\b|\bif\b", without_closed(generator[2])) is None
            else f"({generator[2]})"
        )
        new = f"{generator[1]}({loop[1]} < {loop[2].strip()}) {body}"
        end = len(stop.text) + loop.end()
        return written(stop, f"a reduction names its range first: write `{new}`", generator.start(), end, new)
    if stop.found == "?":
        return _question(stop)
    if stop.found != "{" or re.search(r"\bif\b[^{}]*$", stop.text) is None:
        return None
    said = "write `if CONDITION then VALUE else OTHER`"
    braces = re.match(r"\{\s*([^{}]*?)\s*\}\s*else\s*\{\s*([^{}]*?)\s*\}", stop.rest)
    if braces is None:
        return told(said)
    place = len(stop.text)
    new = f"then {braces[1]} else {braces[2]}"
    return Slip(edit(said, Edit(stop.between(place, place + braces.end()), new)))


def _question(stop: Stop) -> Slip | None:
    """`c ? a : b`."""
    place = len(stop.text)
    begin = _piece_begin(stop.text)
    parts = re.match(r"\?\s*((?:[^?:\[\]()\n]|\[[^\[\]]*\]|\([^()]*\))+?)\s*:\s*", stop.rest)
    condition = stop.text[begin:].strip()
    if parts is None or not condition:
        return None
    other = re.match(r"(?:[^?:,\[\]()\n]|\[[^\[\]]*\]|\((?:[^()]|\([^()]*\))*\))+", stop.rest[parts.end() :])
    if other is None:
        return None
    end = place + parts.end() + len(other[0].rstrip())
    new = f"if {condition} then {parts[1]} else {other[0].strip()}"
    return written(stop, f"write `{new}`", begin, end, new)


def _piece_begin(text: str) -> int:
    """Where the expression begins that a text ends in: behind a `=`, a comma or an open bracket."""
    depth, at = 0, len(text)
    while at:
        sign = text[at - 1]
        if sign in ")]":
            depth += 1
        elif sign in "([":
            depth -= 1
            if depth < 0:
                break
        elif depth == 0 and (
            sign == "," or (sign == "=" and re.search(r"(?<![<>=!])=$", text[:at]) and text[at : at + 1] != "=")
        ):
            break
        at -= 1
    words = re.match(r".*\b(?:where|require|then|else|if)\b", text[at:], re.DOTALL)
    at += words.end() if words is not None else 0
    return at + len(text[at:]) - len(text[at:].lstrip())


def _chain(stop: Stop) -> Slip | None:
    """`0 <= b < c`."""
    operand = re.search(rf"(?:<=|>=|==|!=|<|>)\s*({_READ}|-?[\d.]+)\s*$", stop.text)
    if stop.found not in ("<", "<=", ">", ">=", "==") or operand is None or re.match(r"operator\b[^{]*$", stop.before):
        return None
    joined = (
        ", "
        if re.search(r"\bwhere\b[^{}]*$", stop.text) and not re.search(r"\b(or|not|if)\b[^,]*$", stop.text)
        else " and "
    )
    place = len(stop.text)
    new = f"{joined}{operand[1]} "
    said = (
        f"comparisons do not chain: write `{operand[1]}` twice, `... {operand[1]}{joined}{operand[1]} {stop.found} ...`"
    )
    end = len(stop.text.rstrip())
    return Slip(edit(said, Edit(stop.between(end, place), new)))


def _product(stop: Stop) -> Slip | None:
    if stop.found == "@" and re.match(r"operator\b", stop.before):
        return told("a product is a reduction: `y[n, m] = sum(k < K) a[n, k] * b[k, m]`")
    if stop.found == "{" and (braces := re.match(r"\{([^{}\n]*)\}", stop.rest)) and re.search(r"[=(,]\s*$", stop.text):
        place = len(stop.text)
        new = f"[{braces[1].strip()}]"
        others = re.compile(r"\{([^{}\n]*)\}").finditer(stop.line, stop.span.column - 1)
        changes = (
            Edit(stop.between(place + at, place + at + len(one[0])), f"[{one[1].strip()}]")
            for one in others
            for at in (one.start() - stop.span.column + 1,)
        )
        return Slip(edit(f"a list stands in square brackets: `{new}`", *changes))
    return None


def sums(stop: Stop) -> Slip | None:
    """`y[n] += x[n, k]` and `y = einsum("nk->n", x)`: the sum over what the left side does not have."""
    if re.match(r"operator\b[^{]*\{", stop.before) is None:
        return None
    place = len(stop.text)
    line = stop.whole[stop.text.rfind("\n") + 1 :].partition("\n")[0]
    plus = re.match(r"\s*(?:view\s+)?(\w+)\[([^\]]*)\]\s*(\+=)\s*(.*)$", line)
    if stop.found == "+" and plus is not None:
        left = set(re.findall(r"\w+", plus[2]))
        extents = {i: extent for i, extent in _extents(stop.before, plus[4]).items() if i not in left}
        if not extents:
            said = "one equation gives all elements: write `=`"
            return Slip(edit(said, Edit(stop.between(place, place + 2), "=")))
        if "" in extents.values():
            return told("one equation gives all elements: `y[n, m] = sum(k < K) a[n, k] * b[k, m]`")
        ranges = ", ".join(f"{index} < {extent}" for index, extent in extents.items())
        said = f"one equation gives all elements: write `= sum({ranges})`"
        return Slip(edit(said, Edit(stop.between(place, place + 2), f"= sum({ranges})")))
    einsum = re.match(
        r"\s*(\w+)\s*(?:\[[^\]]*\]\s*)?=\s*(?:\w+\.)?einsum\(\s*[\"']([\w, ]*)->(\w*)[\"']\s*,\s*([\w, ]+)\)", line
    )
    if einsum is None:
        return None
    reads = [part.strip() for part in einsum[2].split(",")]
    names = [part.strip() for part in einsum[4].split(",")]
    if len(reads) != len(names):
        return None
    factors = " * ".join(f"{name}[{', '.join(read)}]" for name, read in zip(names, reads, strict=True))
    extents = {i: extent for i, extent in _extents(stop.before, factors).items() if i not in einsum[3]}
    ranges = ", ".join(f"{index} < {extent or index.upper()}" for index, extent in extents.items())
    new = f"{einsum[1]}[{', '.join(einsum[3])}] = {f'sum({ranges}) ' if ranges else ''}{factors}"
    begin = stop.text.rfind("\n") + 1 + len(line) - len(line.lstrip())
    return written(stop, f"write `{new}`", begin, stop.text.rfind("\n") + 1 + einsum.end(), new)


def _extents(text: str, reads: str) -> dict[str, str]:
    """The index names of some reads with the extents that the signature gives them; empty where it names none."""
    shapes = {
        m[1]: [part.strip() for part in m[2].split(",")] for m in re.finditer(r"(\w+)\s*:\s*\w+\[([^\]]*)\]", text)
    }
    found: dict[str, str] = {}
    for match in re.finditer(r"(\w+)\[([^\]]*)\]", reads):
        shape = shapes.get(match[1], [])
        for axis, index in enumerate(part.strip() for part in match[2].split(",")):
            if re.fullmatch(r"[a-z_]\w*", index):
                known = shape[axis] if axis < len(shape) and not any("*" in one for one in shape[: axis + 1]) else ""
                found.setdefault(index, known)
    return found


def comment_of_line(stop: Stop) -> Slip | None:
    """`x => y  // why`: a comment behind what is written, up to which the line follows the grammar."""
    begin = stop.text.rfind("\n") + 1
    sign = re.compile(r"(?<=\s)(//|--|;;|/\*)(?=\s)").search(stop.whole, begin)
    if sign is None or sign.start() > len(stop.text) or not stop.whole[begin : sign.start()].strip():
        return None
    return written(stop, "a comment begins with `#`", *sign.span(), "#", f"`{sign[1]}` begins no comment here")
