"""First lines of operators and functions as other languages write them."""

from __future__ import annotations

import re

from smartmem_rules.language.fixes import Edit, advice, applied, edit
from smartmem_rules.language.parsing.slips.slip import Slip, all_of, line_end, told, written
from smartmem_rules.language.parsing.stops import Stop
from smartmem_rules.language.vocabulary import ATTRIBUTE_KINDS, CONSTANT_KINDS, DTYPE_WORDS

_CONST = r"const\s+\w+\s*:\s*\w+\??"
_FOREIGN_TYPES = ("tensor", "Tensor", "memref", "TensorType", "ndarray", "NDArray", "array")
_FOREIGN_TYPE = re.compile(
    rf"\b((?:{'|'.join(_FOREIGN_TYPES)})\s*(?:\(\s*(?P<element>\w+)\s*\)"
    r"|<\s*(?P<dims>(?:(?:\?|\d+|\w)x)+)(?P<last>(?:bf|f|si|ui|i|u)\d+)\s*>"
    r"|\[\s*\((?P<shape>[^()]*)\)\s*,\s*\"?(?P<dtype>\w+)\"?\s*\]))"
)
_TYPE_WORDS = DTYPE_WORDS | ATTRIBUTE_KINDS | {"T", "double", "half", "long", "auto", "Tensor"}


def signatures(stop: Stop) -> Slip | None:
    """What to write in the first line of an operator or a function."""
    before = stop.before
    if (
        re.fullmatch(r"[a-z]+\s+[A-Za-z_]\w*", before)
        and re.match(r"(-\w+)+", stop.rest)
        and not before.startswith("let")
    ):
        begin = len(stop.text) - len(before) + before.index(before.split()[1], len(before.split()[0]))
        end = len(stop.text) + len(re.match(r"(-\w+)+", stop.rest)[0])  # type: ignore[index]
        new = stop.whole[begin:end].replace("-", "_")
        return written(stop, "a name is one word: letters, digits and `_`", begin, end, new)
    if re.match(r"operator\b[^{]*$", before):
        ways = (_foreign_types, _constants, _parts, _variables, _order, _inputs, _shapes, _outputs)
        return next(filter(None, (way(stop) for way in ways)), None)
    if re.match(r"(function|predicate)\b", before):
        return _function(stop)
    prefix = re.compile(r"(commutative|internal|override|view)\s+operator\b[^{]*\{").match(stop.whole, len(stop.text))
    if prefix is not None and stop.at_item():
        begin, brace = len(stop.text), prefix.end()
        word = prefix[1]
        removed = Edit(stop.between(begin, begin + len(word) + 1), "")
        inside = Edit(stop.between(brace, brace), f"\n    {word}")
        return Slip(edit(f"`{word}` is a clause: it stands in the braces of the operator", removed, inside))
    typed = re.match(r":\s*\w+\s*(?==)", stop.rest)
    if typed is not None and re.search(r"\blet\s+\w+\s*$", stop.text):
        place = len(stop.text)
        return written(stop, "a `let` has no type", place, place + typed.end(), " ")
    return _headings(stop) or _ruleset(stop)


def _foreign_types(stop: Stop) -> Slip | None:
    """`tensor(float)` of ONNX, `tensor<?x4xf32>` of MLIR and `Tensor[(N, K), float32]` of Relay."""
    word = re.search(r":\s*(\w+)\s*$", stop.text) or re.search(r":\s*(\w+)\s*\[\s*\([^()\]]*$", stop.text)
    if word is None or word[1] not in _FOREIGN_TYPES:
        return None
    end = stop.whole.find("{", word.start())
    found = list(_FOREIGN_TYPE.finditer(stop.whole, word.start(), end if end > 0 else len(stop.whole)))
    if not found or found[0].start(1) != word.start(1):
        return None
    changes = [Edit(stop.between(*one.span(1)), _type_of(one)) for one in found]
    message = f"`{' '.join(found[0][1].split())}` is no type of rule files"
    said = f"a type is an element type with its extents in brackets: write `{changes[0].text}`"
    return Slip(edit(said, *changes), stop.between(*found[0].span(1)), message)


def _type_of(found: re.Match[str]) -> str:
    """A type of another tool as it is written here; extents without names are a list."""
    if found["element"]:
        return f"{_element(found['element'])}[*S]"
    if found["dims"] is not None:
        extents = [f"N{number}" if one == "?" else one for number, one in enumerate(found["dims"].split("x")[:-1])]
        return f"{_element(found['last'])}[{', '.join(extents)}]"
    return f"{_element(found['dtype'])}[{found['shape'].strip().strip(',')}]"


def _element(word: str) -> str:
    short = re.fullmatch(r"(bf|f|i|si|ui|u)(\d+)", word)
    if short is None:
        return {"float": "float32", "double": "float64"}.get(word, word)
    kinds = {"bf": "bfloat", "f": "float", "i": "int", "si": "int", "ui": "uint", "u": "uint"}
    return "bool" if word == "i1" else f"{kinds[short[1]]}{short[2]}"


def _headings(stop: Stop) -> Slip | None:
    """Names in quotes and with hyphens, and imports."""
    place, before = len(stop.text), stop.before
    quoted = re.match(r'"(\w+)"', stop.rest)
    if quoted is not None and re.fullmatch(r"[a-z]+\s*", before) and "NAME" in stop.accepted:
        return written(stop, "names stand without quotes", place, place + quoted.end(), quoted[1])
    if re.match(r"import\b", before):
        file = re.match(r"[^\n\"']*\bfrom\s+[\"']([^\"'\n]+)[\"']\s*;?", stop.rest)
        if file is not None:
            said = f'write `import "{file[1]}"`: all names of the file are known then'
            return written(stop, said, place, place + file.end(), f'"{file[1]}"')
        other = re.match(r"[(<]\s*\"?([\w./-]+)\"?\s*[)>]\s*;?", stop.rest)
        if other is not None:
            new = f'"{other[1]}"'
            blank = "" if before.endswith((" ", "\t")) else " "
            return written(stop, f"write `import {new}`", place, place + other.end(), blank + new)
        if stop.found == "," and before.rstrip().endswith('"'):
            return Slip(
                all_of(stop, "each file has its own `import`", r",\s*(?=\")", "\nimport ", place, line_end(stop))
            )
        alias = re.match(r"as\s+\w+", stop.rest)
        if alias is not None:
            message = "an imported file has no name of its own"
            return written(
                stop, "leave it out: all names of the file are known", place, place + alias.end(), "", message
            )
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
    joined = re.match(r"(or|and|/|&)\s*\w+\s*>", stop.rest)
    if joined is not None and re.search(r"<[^<>()]*$", stop.text):
        return written(stop, "classes of one variable stand between `|`", place, place + len(joined[1]), "|")
    more = re.search(r"<[^<>()]*:\s*\w+\s*(,)\s*(\w+)\s*$", stop.text)
    if stop.found in (">", ",") and more is not None and more[2] in DTYPE_WORDS:
        return written(stop, "classes of one variable stand between `|`", *more.span(1), " |")
    return None


def _constants(stop: Stop) -> Slip | None:
    """`const axes: ints` among the attributes."""
    whole, sign = stop.whole, stop.whole.find(";")
    word = re.search(r"[;,]\s*(const)\s+$", stop.text)
    if word is None or "->" in stop.before or not 0 <= sign < word.start(1):
        return None
    begin = word.start(1)
    one = re.compile(_CONST).match(whole, begin)
    if one is None:
        return None
    message = f"`{one[0]}` is an input, which stands before the `;`"
    where = stop.between(begin, one.end())
    if re.compile(r"\s*=").match(whole, one.end()):
        return Slip(advice("write it before the `;`, without a default: an input has none"), where, message)
    first = re.compile(rf";\s*{_CONST}(?:\s*,\s*{_CONST})*\s*(,)?").match(whole, sign)
    joined = "" if re.search(r"\(\s*$", whole[:sign]) else ","
    end = sign + 1 + (not joined and whole[sign + 1 : sign + 2] == " ")
    if first is not None:
        changes = [Edit(stop.between(sign, end), joined)]
        changes += [Edit(stop.between(*first.span(1)), ";")] if first[1] else []
    else:
        moved = f"{joined} {one[0]}".lstrip()
        changes = [Edit(stop.between(sign, sign), moved), Edit(stop.between(word.start(), one.end()), "")]
    shown = re.search(r"\([^{}]*\)(?=\s*->)", applied(whole, changes))
    said = f"write `{' '.join(shown[0].split())}`" if shown is not None else "write it before the `;`"
    return Slip(edit(said, *changes), where, message)


def _parts(stop: Stop) -> Slip | None:
    """Attributes before the inputs, in brackets of their own, without kinds; commas too many."""
    place, whole = len(stop.text), stop.whole
    begin = whole.find("(")
    turned = re.compile(r"\(([^;()]*=[^;()]*);\s*([^;()=]*)\)\s*->").match(whole, max(begin, 0))
    if stop.found == "=" and turned is not None:
        said = f"inputs stand before `;`, attributes behind it: `({turned[2].strip()}; {turned[1].strip()})`"
        new = f"({turned[2].strip()}; {turned[1].strip()})"
        end = whole.index(")", turned.start()) + 1
        return written(stop, said, turned.start(), end, new, "attributes stand before the inputs")
    beside = re.match(r"[\[{<]([^\[\]{}<>\n]*:[^\[\]{}<>\n]*)[\]}>]", stop.rest)
    if beside is not None and stop.text.rstrip().endswith(")"):
        close = stop.text.rstrip().rfind(")")
        said = f"attributes stand behind the inputs and a `;`: `(x: T[*S]; {beside[1].strip()})`"
        return written(stop, said, close, place + beside.end(), f"; {beside[1].strip()})")
    bare = re.search(r"[;,]\s*(\w+)\s*$", stop.text)
    default = re.match(r"=\s*(-?\d+(\.\d+)?|\"[^\"\n]*\"|true\b|false\b)", stop.rest)
    if bare is not None and default is not None and ";" in stop.before:
        first = default[1][0]
        kind = "string" if first == '"' else "bool" if first in "tf" else "float" if default[2] else "int"
        said = f"write `{bare[1]}: {kind} = {default[1]}`"
        where = stop.between(*bare.span(1))
        change = Edit(stop.between(bare.end(1), place), f": {kind} ")
        return Slip(edit(said, change), where, f"the attribute `{bare[1]}` has no kind")
    if stop.found == "?" and ";" in stop.before and re.search(r":\s*\w+\s*$", stop.text):
        return written(
            stop, "an attribute that may be absent has the default `none`: write ` = none`", place, place + 1, " = none"
        )
    if stop.found == ")" and (comma := re.search(r"(,)\s*$", stop.text)):
        return written(
            stop, "leave the comma out", *comma.span(1), "", "a comma stands before another part, and none follows"
        )
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
        kind = kind if kind in DTYPE_WORDS or re.search(rf"<[^<>]*\b{kind}\b", stop.before) else "T"
        said = f"write `{name}: {kind}[*S]`, or `{name}: {kind}[]` for a tensor of one element"
        return Slip(advice(said), where, f"the type of `{name}` has no extents")
    if stop.found == ";" and re.search(r";[^;]*=[^;]*$", stop.before) and "->" not in stop.before:
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
    if stop.found == "(" and re.search(r"<[^<>()]*:\s*\w+\s*$", stop.text):
        end = len(stop.text.rstrip())
        return Slip(edit("`>` closes the variables of dtypes", Edit(stop.between(end, end), ">")))
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
    unnamed = re.search(r"->\s*(\w+\s*\[)[^\[\]]*$", stop.text)
    if unnamed is not None:
        begin = unnamed.start(1)
        shape = re.compile(r"\w+\s*\[[^\[\]\n]*\]").match(stop.whole, begin)
        said = f"an output has a name: `-> y: {shape[0] if shape is not None else 'T[N, K]'}`"
        return Slip(edit(said, Edit(stop.between(begin, begin), "y: ")), stop.between(begin, place))
    heritage = re.match(r"(extends|implements|inherits|like)\s+[\w, ]+(?=\{)", stop.rest)
    if heritage is not None:
        return written(stop, "operators do not extend others: leave it out", place, place + heritage.end(), "")
    condition = re.match(r"(where|requires?|if|when)\s+([^{}\n]+?)\s*\{", stop.rest)
    if condition is not None:
        new = f"{{\n    require {condition[2]}"
        return written(
            stop, f"conditions stand in the braces: `require {condition[2]}`", place, place + condition.end(), new
        )
    if stop.found == "=" and re.search(r"->.*\]\s*$", stop.text):
        return told("the definition stands in braces: `{ y[*i] = EXPRESSION }`")
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
    closed = re.match(r"[^()\n]*\)\s*=", stop.rest)
    if stop.found == "=" and closed is not None and re.search(r"\([^()]*\w\s*$", before):
        defaults = r"\s*=\s*[^,()=]+(?=[,)])"
        close = stop.whole.find(")", place)
        return Slip(all_of(stop, "parameters have no defaults", defaults, "", place, close + 1 if close > 0 else None))
    arrow = re.match(r"=\s*\(?([\w, ]+?)\)?\s*(?:->|=>)\s*", stop.rest)
    if arrow is not None and re.fullmatch(r"(function|predicate)\s+\w+\s*", before):
        new = f"({arrow[1]}) = "
        return written(
            stop, f"its parameters follow the name: `{new}...`", len(stop.text.rstrip()), place + arrow.end(), new
        )
    body = re.match(r"\{\s*(?:return\s+)?([^{};\n]+?)\s*;?\s*\}", stop.rest)
    if body is not None and re.search(r"\)\s*$", before):
        said = f"a function is one expression: write `= {body[1]}`"
        return written(stop, said, place, place + body.end(), f"= {body[1]}")
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
