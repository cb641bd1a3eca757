"""How to mend what other languages write in place of what stands in a rule file."""

from __future__ import annotations

import re
import unicodedata

from smartmem_rules.language.expressions import Span
from smartmem_rules.language.fixes import Edit, Fix, advice, before, edit, replacement
from smartmem_rules.language.parsing.block_forms import block_forms
from smartmem_rules.language.parsing.brackets import bracket_hint
from smartmem_rules.language.parsing.expectation import COMPARISONS
from smartmem_rules.language.parsing.headings import headings
from smartmem_rules.language.parsing.other_forms import guards_elsewhere, other_forms
from smartmem_rules.language.parsing.stops import Stop, without_closed

_INSTEAD = {
    "&": ("write `and`, or a comma between two guards", "and"),
    "|": ("write `or`", "or"),
    "!": ("write `not`", "not "),
    **dict.fromkeys(("elif", "elseif", "elsif"), ("write `else if`", "else if")),
    "//": ("a comment begins with `#`", "#"),
    "->": ("write `=>`", "=>"),
    "func": ("write `function`", "function"),
    "const": ("write `let`", "let"),
    "^": ("write `**`", "**"),
}
_CHARACTERS = {
    "\0": "",
    "\ufeff": "",
    "\u200b": "",
    "\u00a0": " ",
    "\u201c": '"',
    "\u201d": '"',
    "\u2212": "-",
    "\u2013": "-",
    "\u00d7": "*",
    "\u2264": "<=",
    "\u2265": ">=",
    "\u2260": "!=",
    "\u2192": "=>",
    "\u21d2": "=>",
    "\u27f9": "=>",
    "\u27f6": "=>",
    "\u27fa": "<=>",
    "\u2194": "<=>",
    "\u21d4": "<=>",
}
_ADVICE = {
    "/*": "a comment begins with `#`",
    "rule": "write `rewrite NAME in RULESET`",
    **dict.fromkeys(("op", "class", "kernel", "struct"), "write `operator NAME(x: T[*S]) -> y: T[*S] { ... }`"),
    **dict.fromkeys(
        ("def", "fn", "fun"), "a function is one expression: `function NAME(a) = EXPRESSION`, without `:` and `return`"
    ),
}
_ATTRIBUTE_AMONG_OPERANDS = re.compile(r"\brewrite\b.*[(,]\s*\w+\s*$", re.DOTALL)
_NAMED_ON = re.compile(r"\w+\s+in\b")
_RANGELESS = re.compile(
    r"\b(sum|max|min|prod|mean|any|all)\s*\(\s*\*?[A-Za-z_]\w*\s*\)\s*"
    r"(?!(?:and|or|then|else|if|for|in|where|explores|let|relaxes|tags|cites|require)\b)[\w(]"
)


def hint(stop: Stop) -> Fix | None:
    """A fix for what cannot stand at a place."""
    found, text = stop.found, stop.before
    return (
        _arrow(stop)
        or guards_elsewhere(stop)
        or _other_word(stop)
        or _reduction(stop)
        or block_forms(stop)
        or headings(stop)
        or other_forms(stop)
        or bracket_hint(stop)
        or _sign(stop)
        or (_PATTERN_NAMES if found in "+-*/" and _in_pattern(text) else None)
        or _missing(stop)
    )


_PATTERN_NAMES = advice("a pattern names operators: `Add(x, 0)`")


def _in_pattern(text: str) -> bool:
    return re.search(r"\brewrite\b(?!.*\b(?:where|tags|unsound)\b)", text, re.DOTALL) is not None


def _arrow(stop: Stop) -> Fix | None:
    """Between the sides of a rule."""
    if stop.found in ("=", "==", ">=", "->", "->>", "==>") and "=>" in stop.signs and _in_pattern(stop.before):
        rest = stop.line[stop.span.column - 1 :]
        length = len(rest) - len(rest.lstrip("=->"))
        return replacement("write `=>`, or `<=>` for a rule of both directions", stop.here(length), "=>")
    return None


def _other_word(stop: Stop) -> Fix | None:
    """What another language calls otherwise."""
    rest = stop.line[stop.span.column - 1 :]
    if rest and rest[0] in _CHARACTERS:
        new = _CHARACTERS[rest[0]]
        return replacement(f"write `{new}`" if new.strip() else "remove it", stop.here(1), new)
    if rest and not rest[0].isascii() and (plain := unicodedata.normalize("NFKC", rest[0])).isascii():
        return replacement(f"write `{plain}`", stop.here(1), plain)  # such as a parenthesis of a Chinese keyboard
    if rest[:1] == "'":
        return _in_quotes(stop)
    for word in (stop.found, *((rest[:2], rest[:1]) if not rest[:1].isalnum() else ())):
        if word in _ADVICE and (word == "/*" or "OPERATOR" in stop.accepted):
            return advice(_ADVICE[word])
        if word in _INSTEAD and (word != "->" or "=>" in stop.signs):
            text, new = _INSTEAD[word]
            doubled = len(word) == 1 and rest[:2] == 2 * word
            return replacement(text, stop.here(len(word) * (1 + doubled)), new)
    return None


def _in_quotes(stop: Stop) -> Fix:
    """Text between single quotes."""
    rest = stop.line[stop.span.column - 1 :]
    text = "text stands between double quotes"
    closed = re.match(r"'([^'\"]*)'", rest)
    return replacement(text, stop.here(closed.end()), f'"{closed[1]}"') if closed else advice(text)


def rangeless(stop: Stop) -> Span | None:
    """The place of a reduction without a range: parsing goes on behind it, and stops only where that makes no sense."""
    text = stop.without_words().text
    match = _RANGELESS.search(text)
    return None if match is None else stop.between(match.start(), text.index(")", match.start()) + 1)


def _reduction(stop: Stop) -> Fix | None:
    text = stop.without_words().before
    if rangeless(stop) is not None:
        return advice("a reduction names its range: `sum(k < K) x[k]`")
    if re.search(r"\b(sum|max|min|prod|mean|any|all)\s*\([^()]*<[^()]*,[^()]*$", text):
        return advice("what is reduced stands behind the parentheses: `sum(k < K) x[k]`")
    return None


def _sign(stop: Stop) -> Fix | None:
    """A sign that means something else or nothing here."""
    found, accepted, text = stop.found, stop.accepted, stop.before
    if found == ">" and text.endswith("-"):
        return replacement("write `=>`", stop.span._replace(column=stop.span.column - 1), "=>")
    if found == ">" and stop.line[: stop.span.column - 1].endswith("<"):
        before_it = stop.span._replace(column=stop.span.column - 1)
        return replacement("write `!=`", before_it, "!=")
    if found in COMPARISONS and re.search(r"[<>=]", text.rpartition("\n")[2]) and not _in_signature(text):
        return advice("write `a < b and b < c`: comparisons do not chain")
    if found == "=" and "SEMICOLON" in accepted and _ATTRIBUTE_AMONG_OPERANDS.search(text):
        return _behind_operands(stop)
    if found == "=" and "EQUAL" not in accepted and ("==" in stop.signs or text.endswith("=")):
        return replacement("write `==` to compare", stop.span, "==")
    if re.fullmatch(r"\.\d+", found) and re.search(r"\d\.\d*$", text):
        return advice("a number has one decimal point")
    if found == ";" and re.search(r"\w\([^()]*;[^()]*$", without_closed(text)):
        return replacement("one `;` stands before all attributes, commas between them: write `,`", stop.span, ",")
    if found == "," and "COMMA" not in accepted and re.search(r"(?:^|[^\w\s]|\b(?:in|and|or|not))\s*\([^()]*$", text):
        return _list_in_parentheses(stop)
    if (
        found == ";"
        and "COMMA" in accepted
        and re.search(r"\bwhere\b[^;]*$", text)
        and re.match(r";[ \t]*\w", stop.rest)
    ):
        return replacement("guards stand between commas: write `,`", stop.span, ",")
    if found == ";" and "SEMICOLON" not in accepted:
        return replacement("nothing ends with `;` here", stop.span, "")
    return None


def _list_in_parentheses(stop: Stop) -> Fix:
    """`(0, 2, 1)` as a list."""
    said = "a list stands in square brackets: `[0, 2, 1]`"
    begin = stop.line.rfind("(", 0, stop.span.column - 1)
    end = stop.line.find(")", stop.span.column - 1)
    if begin < 0 or end < 0 or "(" in stop.line[begin + 1 : end]:
        return advice(said)
    first, last = (stop.here(1)._replace(column=at + 1, end_column=at + 2) for at in (begin, end))
    return edit(said, Edit(first, "["), Edit(last, "]"))


def _in_signature(text: str) -> bool:
    return text.startswith("operator") and "{" not in text


def _behind_operands(stop: Stop) -> Fix:
    """The comma before an attribute among the operands becomes `;`."""
    text = "attributes stand behind the operands and a `;`: `Softmax(x; axis = 1)`"
    comma = re.search(r",(\s*\w+\s*)$", stop.text)
    written = re.search(r"(\w+)\(([^();]*),\s*(\w+)\s*$", stop.text)
    value = re.match(r"=\s*(\[[^\[\]]*\]|[^\s,;()\[\]]+)\s*[,)]", stop.line[stop.span.column - 1 :])
    if written is not None and value is not None:
        shown = f"{written[1]}({' '.join(written[2].split())}; {written[3]} = {value[1]})"
        text = f"attributes stand behind the operands and a `;`: `{shown}`"
    if re.search(r"\(\s*\w+\s*$", stop.text):
        return advice("operands stand by their place, without names: `Gemm(a, b)`; attributes follow behind `;`")
    if comma is None:
        return advice(text)
    line = stop.text.count("\n", 0, comma.start()) + 1
    column = comma.start() - stop.text.rfind("\n", 0, comma.start())
    return replacement(text, Span(stop.span.file, line, column, line, column + 1), ";")


def _signs_missing(stop: Stop) -> Fix | None:
    """Brackets of scalars and numbered outputs, `or` before `fail`, commas between operands."""
    found, text = stop.found, stop.before
    if found == "(" and re.search(r"\brequire\b[^\n]*[^r\s]\s+fail$", text):
        begin = stop.span._replace(column=stop.span.column - 4, end_line=stop.span.line, end_column=stop.span.column)
        return replacement("the reason stands behind `or`: write `or fail(...)`", begin, "or fail")
    scalar = re.search(r"->[^{\n]*:\s*(\w+)\s*$", text)
    if found in ("{", ",") and scalar is not None and "[" in stop.signs:
        said = f"a tensor without axes has brackets, too: write `{scalar[1]}[]`"
        return edit(said, Edit(stop.behind_text(), "[]"))
    operand = re.search(r"\(([^()=]*);(\s*\w+)$", text)
    if found in (")", ",") and operand is not None and "=" in stop.signs:
        column = stop.span.column - len(operand[2]) - 1
        sign = stop.span._replace(column=column, end_line=stop.span.line, end_column=column + 1)
        return replacement("operands stand between commas: write `,`; behind `;` attributes follow", sign, ",")
    several = re.search(r"->[^{]*?(\w+)$", text)
    if found == "..." and several is not None:
        return edit(f"the outputs of a list are numbered: write `{several[1]}[j]`", Edit(stop.span, "[j]"))
    return None


def _missing(stop: Stop) -> Fix | None:
    """What was left out before the place."""
    sign = _signs_missing(stop)
    if sign is not None:
        return sign
    found, accepted, text = stop.found, stop.accepted, stop.before
    if "IN" in accepted and re.search(r"\brewrite\s+in\s*$", text):
        return edit("a rule has a name: `rewrite NAME in algebra`", Edit(before(stop.span), "in "))
    if "IN" in accepted and re.search(r"\brewrite\s+\w+ $", text) and _NAMED_ON.match(stop.line, stop.span.column - 1):
        blank = stop.span._replace(end_line=stop.span.line, column=stop.span.column - 1, end_column=stop.span.column)
        return edit("a name is one word: letters, digits and `_`", Edit(blank, "_", " "))
    if "LBRACE" in accepted and re.search(r"\boperator\b[^{]*->[^{]*$", text) and found != "->":
        return edit("the clauses of an operator stand in braces: `{ ... }`", Edit(stop.behind_text(), " {"))
    if "IN" in accepted and re.search(r"\brewrite\s+\w+\s*$", text):
        return advice("a rule names its rule set: `rewrite NAME in algebra`")
    if "STRING" in accepted and re.search(r"\bimport\s*$", text):
        words = stop.line[stop.span.column - 1 :].split()
        said = 'write the file between quotation marks: `import "other.smr"`'
        file = words[0].strip("';") if words else ""
        file += ".smr" if file and "." not in file else ""
        return replacement(said, _rest(stop), f'"{file}"') if file else advice(said)
    if "SEMICOLON" in accepted and re.search(r"\bonnx\s+\S+\s*$", text):
        return edit("an `onnx` clause ends with `;`", Edit(stop.behind_text(), ";"))
    if "COLON" in accepted and re.search(r"\bconst\s+\w+\s*$", text):
        name = text.split()[-1]
        return advice(f"say of which kind it is: `const {name}: int`, or ints, float, floats, tensor")
    if "COLON" in accepted and re.search(r"\boperator\b[^({]*\([^{]*$", text):
        return advice("an operand has a type: `x: T[*S]`")
    if found == "[" and re.search(r"\bfor\b.*\bin\s*$", text):
        return _without_brackets(stop)
    if found == "," and "CELL" in accepted:
        places = [place for place in range(stop.span.column, len(stop.line) + 1) if stop.line[place - 1] == ","]
        commas = (Edit(stop.span._replace(column=place, end_column=place + 1), " ") for place in places)
        return edit("the cells of a row stand apart by blanks, without commas", *commas)
    return None


def _rest(stop: Stop) -> Span:
    """The rest of the line, without blanks at its end."""
    return stop.span._replace(end_line=stop.span.line, end_column=len(stop.line.rstrip()) + 1)


def _without_brackets(stop: Stop) -> Fix:
    text = "the members stand without brackets: `for Op in Relu, Exp { ... }`"
    close = stop.line.find("]", stop.span.column)
    if close < 0:
        return advice(text)
    closing = before(stop.span._replace(column=close + 1))._replace(end_column=close + 2)
    return edit(text, Edit(stop.here(1), ""), Edit(closing, ""))
