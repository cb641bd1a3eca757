"""First lines of operators and functions as other languages write them."""

from __future__ import annotations

import re

from smartmem_rules.language.fixes import Edit, advice, edit
from smartmem_rules.language.parsing.slips.slip import Slip, all_of, line_end, told, written
from smartmem_rules.language.parsing.stops import Stop
from smartmem_rules.language.vocabulary import ATTRIBUTE_KINDS, CONSTANT_KINDS, DTYPE_WORDS

_TYPE_WORDS = DTYPE_WORDS | ATTRIBUTE_KINDS | {"T", "double", "half", "long", "auto", "Tensor"}


def signatures(stop: Stop) -> Slip | None:
    """What to write in the first line of an operator or a function."""
    before = stop.before
    if re.match(r"operator\b[^{]*$", before):
        return _variables(stop) or _order(stop) or _inputs(stop) or _shapes(stop) or _outputs(stop)
    if re.match(r"(function|predicate)\b", before):
        return _function(stop)
    if re.match(r"let\s+\w+\s*$", before) and stop.found == "(":
        begin = len(stop.text) - len(before)
        return written(stop, "write `function`", begin, begin + 3, "function", "what has parameters is a function")
    return _ruleset(stop)


def _variables(stop: Stop) -> Slip | None:
    """`operator Halve[T: float](...)` and `<T: float, int>`."""
    place = len(stop.text)
    if stop.found == "[" and re.fullmatch(r"operator\s+\w+\s*", stop.before):
        brackets = re.match(r"\[([^\]\n]*)\]", stop.rest)
        if brackets is not None:
            inner = brackets[1] if ":" in brackets[1] else f"{brackets[1].strip()}: number"
            return written(stop, f"write `<{inner}>`", place, place + brackets.end(), f"<{inner}>")
    more = re.search(r"<[^<>()]*:\s*\w+\s*(,)\s*(\w+)\s*$", stop.text)
    if stop.found in (">", ",") and more is not None and more[2] in DTYPE_WORDS:
        return written(stop, "classes of one variable stand between `|`", *more.span(1), " |")
    return None


def _order(stop: Stop) -> Slip | None:
    """`float a = 1.0` and `float32 x[N]`, the type before the name, and `Tensor<float32>[N]`."""
    place = len(stop.text)
    typed = re.search(r"[(,;]\s*(?:const\s+)?(\w+)\s+$", stop.text)
    named = re.match(r"([A-Za-z_]\w*)(\s*\[[^\]\n]*\])?", stop.rest)
    if typed is not None and named is not None and typed[1] in _TYPE_WORDS:
        new = f"{named[1]}: {typed[1]}{(named[2] or '').strip()}"
        return written(stop, f"the type follows the name: `{new}`", typed.start(1), place + named.end(), new)
    generic = re.search(r":\s*(\w+)\s*$", stop.text)
    inner = re.match(r"<\s*(\w+)\s*>", stop.rest)
    if stop.found == "<" and generic is not None and inner is not None:
        message = f"a type is an element type with its extents, without `{generic[1]}`"
        return written(stop, f"write `{inner[1]}[...]`", generic.start(1), place + inner.end(), inner[1], message)
    return None


def _inputs(stop: Stop) -> Slip | None:
    place = len(stop.text)
    value = re.search(r"[(,]\s*(\w+)\s*:\s*(\w+)\s*$", stop.text)
    if value is not None and ";" not in stop.before and stop.found in (")", ",", ";") and "->" not in stop.before:
        name, kind = value[1], value[2]
        where = stop.between(value.start(1), len(stop.text.rstrip()))
        if kind in CONSTANT_KINDS and kind != "tensor":
            said = (
                f"write `const {name}: {kind}` for an input whose value is known when the model is imported, "
                f"or put `{name}: {kind}` behind `;` for an attribute"
            )
            return Slip(advice(said), where, f"`{name}: {kind}` is no tensor: a tensor's type has extents")
        said = f"write `{name}: {kind}[*S]`, or `{name}: {kind}[]` for a tensor of one element"
        return Slip(advice(said), where, f"the type of `{name}` has no extents")
    if stop.found == ";" and re.search(r";[^;]*=[^;]*$", stop.before):
        others = r";(?=\s*\w+\s*:)"
        close = stop.whole.find("->", place)
        return Slip(all_of(stop, "attributes stand between commas", others, ",", place, close if close > 0 else None))
    number = re.search(r"[;,]\s*(\w+)\s*:\s*$", stop.text)
    literal = re.match(r"-?\d+(\.\d+)?|\"[^\"\n]*\"|true|false|\[", stop.rest)
    if number is not None and literal is not None and ";" in stop.before and literal[0] != "[":
        kind = (
            "string" if literal[0][0] == '"' else "bool" if literal[0][0] in "tf" else "float" if literal[1] else "int"
        )
        new = f"{kind} = {literal[0]}"
        return written(stop, f"write `{number[1]}: {new}`", place, place + literal.end(), new)
    starred = re.match(r"\*\s*(\w+)", stop.rest)
    if stop.found == "*" and starred is not None and re.search(r"[(,]\s*$", stop.text) and "->" not in stop.before:
        return written(stop, f"write `{starred[1]}...`", place, place + starred.end(), f"{starred[1]}...")
    absent = re.match(r"=\s*(none|None|null|nil)\b", stop.rest)
    if absent is not None and re.search(r"\]\s*$", stop.text):
        message = "an input that may be absent has `?` behind its type"
        return written(stop, "write `?`", len(stop.text.rstrip()), place + absent.end(), "?", message)
    marked = re.match(r"\?\s*:\s*(\w+\[[^\]\n]*\])", stop.rest)
    if stop.found == "?" and marked is not None:
        new = f": {marked[1]}?"
        message = "an input that may be absent has `?` behind its type"
        return written(stop, f"write `{new[2:]}`", place, place + marked.end(), new, message)
    return None


def _shapes(stop: Stop) -> Slip | None:
    """`T[..., K]` and `T[N, ?]`."""
    extents = re.match(r"\(([^()\n]*)\)", stop.rest)
    if stop.found == "(" and extents is not None and re.search(r":\s*\w+\s*$", stop.text):
        place = len(stop.text)
        more = re.compile(r"(?<=\w)\((?=[^()\n]*\)\s*[,;){?])").finditer(stop.whole, place + 1)
        begins = [place, *(one.start() for one in more)]
        changes = [
            Edit(stop.between(at, close + 1), f"[{stop.whole[at + 1 : close]}]")
            for at in begins
            for close in (stop.whole.index(")", at),)
            if re.search(r":\s*\w+\s*$", stop.whole[:at])
        ]
        return Slip(edit("extents stand in square brackets: `T[N, K]`", *changes))
    if re.search(r"\w\s*\[[^\[\]]*$", stop.text) is None:
        return None
    if stop.found in ("...", ".."):
        end = line_end(stop)
        dots = all_of(
            stop, "several extents are a list with a name: `T[*S, K]`", r"(?<=[\[ ,])\.\.\.?", "*S", len(stop.text), end
        )
        return Slip(dots)
    if stop.found in ("?", ":", "_"):
        return told("each extent has a name, `T[N, K]`, or is a number")
    return None


def _outputs(stop: Stop) -> Slip | None:
    place = len(stop.text)
    outputs = re.match(r"\(([^()\n]*)\)", stop.rest)
    if stop.found == "(" and outputs is not None and re.search(r"->\s*$", stop.text) and ":" in outputs[1]:
        return written(stop, "outputs stand without parentheses", place, place + outputs.end(), outputs[1])
    return None


def _function(stop: Stop) -> Slip | None:
    place, before = len(stop.text), stop.before
    if stop.found == ":" and re.search(r"\([^()]*$", before):
        typed = r"\s*:\s*\w+(?=\s*[,)])"
        close = stop.whole.find(")", place)
        return Slip(all_of(stop, "parameters have no types", typed, "", place, close + 1 if close > 0 else None))
    if stop.rest.startswith(":="):
        return written(stop, "write `=`", place, place + 2, "=")
    result = re.match(r"->\s*\w+\s*(?==)", stop.rest)
    if result is not None:
        return written(stop, "a function has no type of its result", place, place + result.end(), "")
    local = re.search(r"=\s*(let)\s*$", before)
    if local is not None:
        begin = place - len(before) + local.start(1)
        said = "a function is one expression: write the value out, or make it a function of its own"
        return Slip(advice(said), stop.between(begin, begin + 3), "a function has no `let`")
    return None


def _ruleset(stop: Stop) -> Slip | None:
    named = re.match(r"ruleset\s+(\w+)\s*$", stop.before)
    if named is None:
        return None
    place = len(stop.text)
    other = re.match(r"(before|behind|runs|follows|in|extends)\s+(\w+)", stop.rest)
    if other is not None and other[1] == "before":
        return told(
            f"a rule set says what it runs behind: `ruleset {other[2]} after {named[1]}`, in the file of `{other[2]}`"
        )
    if other is not None:
        return written(stop, "write `after`", place, place + len(other[1]), "after")
    if stop.found in (":", "=", "<", ">") and re.match(r".\s*\w", stop.rest):
        return Slip(edit("write `after`", Edit(stop.between(place, place + 1), " after")))
    inside = re.match(r"\{\s*after\s+([\w, ]+?)\s*;?\s*\}", stop.rest)
    if inside is not None:
        return written(
            stop, f"write `ruleset {named[1]} after {inside[1]}`", place, place + inside.end(), f"after {inside[1]}"
        )
    return None
