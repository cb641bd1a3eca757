"""What other languages write where an item begins: comments, imports, rules as s-expressions, marks of tools."""

from __future__ import annotations

import re

from smartmem_rules.language.fixes import Edit, advice, edit, nearest
from smartmem_rules.language.parsing.slips.expressions import called
from smartmem_rules.language.parsing.slips.slip import Slip, line_end, told
from smartmem_rules.language.parsing.stops import Stop
from smartmem_rules.language.vocabulary import BLOCK_WORDS, ITEM_WORDS

_RULE = "write `rewrite NAME in algebra`, then `Neg(Neg(x)) => x`"
_COMMENT = "a comment begins with `#`"
_MARKS = re.compile(r"(<{7}|={7}|>{7})")
_PROSE = re.compile(r"[A-Za-z][\w'-]*( +[A-Za-z][\w'-]*,?){2,}")
_DEFINED = re.compile(
    r"(?:def|fn|fun|func)\s+(?P<name>[A-Za-z_]\w*)\s*\((?P<parameters>[^()\n]*)\)\s*(?:->\s*\w+\s*)?"
    r"(?::|=>|=|\{)\s*(?:return\b\s*)?(?P<body>[^{};\n=]+(?:(?:==|<=|>=|!=)[^{};\n=]+)*);?[ \t]*(?:\s*\})?"
)
_EGGLOG = {
    "rewrite": _RULE,
    "birewrite": "write `rewrite NAME in algebra`, then `LEFT <=> RIGHT`",
    "rule": "a rule has two sides, `rewrite NAME in algebra`, then `LEFT => RIGHT`; facts come from `derive`",
    **dict.fromkeys(
        ("datatype", "sort", "constructor", "function", "relation"),
        "terms need no declaration: operators are the constructors, `operator NAME(x: T[*S]) -> y: T[*S] { ... }`",
    ),
    "ruleset": "write `ruleset NAME after algebra`",
    **dict.fromkeys(("run", "run-schedule", "check", "extract"), "levels say what runs: leave it out"),
}
_FOREIGN = (
    (r"rw!|rewrite!|multi_rewrite!", f"this is egg's form: {_RULE}"),
    (r"pdl\.|pdl_interp\.", f"this is MLIR's form: {_RULE}"),
    (r"Pattern\b[^=]*\{|(Pattern|Constraint|Rewrite)\s+\w+\s*[(=]", f"this is PDL's form: {_RULE}"),
    (r"def\s+\w+\s*:\s*Pat", f"this is MLIR's form: {_RULE}"),
    (r"@\w", f"this is Python's form: {_RULE}"),
    (r"class\s+\w+\s*[(:].*(?i:pattern|rule|rewrit)", f"this is Python's form: {_RULE}"),
)


def items(stop: Stop) -> Slip | None:
    """What to write where a line begins that is no item."""
    begin, end = len(stop.text), line_end(stop)
    line = stop.whole[begin:end]
    if stop.found == "=" and _MARKS.match(line):
        return _marks(stop, begin, end)
    quotes = _quotes(stop)
    if quotes is not None or not stop.at_item():
        return quotes
    if _MARKS.match(line):
        return _marks(stop, begin, end)
    if line.startswith("```"):
        found = re.compile(r"(?m)^```.*$").finditer(stop.whole, begin)
        fences = [Edit(stop.between(*one.span()), "") for one in found]
        return Slip(edit("this is Markdown's: leave the line out", *fences), stop.between(begin, end))
    for pattern, said in _FOREIGN:
        if re.match(pattern, line):
            return Slip(advice(said), stop.between(begin, end))
    return _import(stop, line) or _function(stop) or _comment(stop, line) or _expression(stop, line)


def _quotes(stop: Stop) -> Slip | None:
    """Quotation marks inside of a text."""
    begin = stop.text.rfind("\n") + 1
    text = re.match(r'\s*(?:cites|unsound|reference|import)\s+"(.*)"\s*$', stop.whole[begin : line_end(stop)])
    if text is None or len(stop.text) <= begin + text.start(1):
        return None
    if re.fullmatch(r'[^"]*"\s*,\s*"[^"]*(?:"\s*,\s*"[^"]*)*', text[1]):
        return None  # several texts
    inner = [at for at in range(*text.span(1)) if text.string[at] == '"' and text.string[at - 1] != "\\"]
    if not inner:
        return None
    changes = (Edit(stop.between(begin + at, begin + at), "\\") for at in inner)
    return Slip(edit('a quotation mark inside of a text is written `\\"`', *changes))


def _marks(stop: Stop, begin: int, end: int) -> Slip:
    said = advice("keep one of the two versions, and remove the lines of `<<<<<<<`, `=======` and `>>>>>>>`")
    return Slip(said, stop.between(begin, end), "a merge left both versions here")


def _function(stop: Stop) -> Slip | None:
    """`def half(n): return n // 2` and `fn half(n) { n / 2 }`, with one expression."""
    begin = len(stop.text)
    match = _DEFINED.match(stop.whole, begin)
    if match is None:
        return None
    parameters = ", ".join(part.split(":")[0].strip() for part in match["parameters"].split(",")).strip()
    new = f"function {match['name']}({parameters}) = {match['body'].strip()}"
    where = stop.between(*match.span())
    return Slip(
        edit(f"a function is one expression: write `{new}`", Edit(where, new)), stop.between(begin, line_end(stop))
    )


def _comment(stop: Stop, line: str) -> Slip | None:
    begin, end = len(stop.text), line_end(stop)
    where = stop.between(begin, end)
    sign = re.match(r"--+|;+|%+|//+|REM\b|\"{3}|'{3}|/\*", line)
    if sign is not None and sign[0][0] in "\"'/" and sign[0][:2] != "//":
        closing = "*/" if sign[0] == "/*" else sign[0]
        close = stop.whole.find(closing, begin + len(sign[0]))
        if close < 0:
            return Slip(advice(_COMMENT), where)
        text = stop.whole[begin : close + len(closing)]
        inner = text[len(sign[0]) : -len(closing)].strip().split("\n")
        lines = (f"# {one.strip().lstrip('*').strip()}".rstrip() for one in inner)
        return Slip(edit(_COMMENT, Edit(stop.between(begin, begin + len(text)), "\n".join(lines))), where)
    if sign is not None:
        return Slip(edit(_COMMENT, Edit(stop.between(begin, begin + sign.end()), "#")), where)
    first = re.match(r"\w+", line)
    here = (sign for sign in stop.signs if sign.isalpha())
    if first is not None and nearest(first[0], (*ITEM_WORDS, *BLOCK_WORDS, *here)) is not None:
        return None
    if _PROSE.match(line) and re.search(r"[{}=<>\[\]()]", line) is None:
        return Slip(edit(_COMMENT, Edit(stop.between(begin, begin), "# ")), where, "this text is no item")
    return None


def _import(stop: Stop, line: str) -> Slip | None:
    named = re.match(r"(?:from|using|require|include)\s+[\"']([^\"']+)[\"']\s+(?:import|use|as|only)\b.*", line)
    if named is not None:
        new = f'import "{named[1]}"'
        where = stop.between(len(stop.text), line_end(stop))
        return Slip(edit(f"write `{new}`: all names of the file are known then", Edit(where, new)), where)
    python = re.match(r"from\s+([\w.]+)\s+import\b.*|import\s+([\w.]+)\s*;?$", line)
    if python is None:
        return None
    file = (python[1] or python[2]).strip(".").replace(".", "/")
    file = file.removesuffix("/smr")
    new = f'import "{file}.smr"'
    where = stop.between(len(stop.text), line_end(stop))
    return Slip(edit(f"write `{new}`: all names of the file are known then", Edit(where, new)), where)


def _expression(stop: Stop, line: str) -> Slip | None:
    """An s-expression, as egglog has them."""
    head = re.match(r"\(\s*([a-z][\w-]*)", line)
    if head is None or head[1] not in _EGGLOG:
        return None
    said = f"this is egglog's form: {_EGGLOG[head[1]]}"
    where = stop.between(len(stop.text), line_end(stop))
    sides = called(stop.whole[len(stop.text) + head.end() :], 2)
    if head[1] in ("rewrite", "birewrite") and len(sides) == 2 and not line.rstrip().endswith(":when"):
        arrow = "=>" if head[1] == "rewrite" else "<=>"
        return Slip(
            advice(f"this is egglog's form: write `rewrite NAME in algebra`, then `{sides[0]} {arrow} {sides[1]}`"),
            where,
        )
    return Slip(advice(said), where)


def at_item_word(stop: Stop) -> Slip | None:
    """A clause of rules that there is not, at the beginning of a line."""
    inside = re.match(r"(rewrite|eliminate|index|keep|derive)\b", stop.before)
    if inside is None or not stop.at_item() or re.fullmatch(r"[A-Za-z_]\w*", stop.found) is None:
        return None
    if inside[1] == "rewrite" and "=>" not in stop.text:
        return None
    if re.match(r"\w+\s*\"", stop.rest) and re.match(r"note|comment|doc|desc|why|reason|text|name", stop.found):
        return told("a comment begins with `#`; where a rule comes from stands behind `cites`")
    if re.match(r"(fast|unsafe|reassoc|allow)", stop.found):
        return told("rules that change rounding say `relaxes reassociation`, also `nan`, `infinities`, `signed_zero`")
    if re.match(r"\w+\b[ \t]*(\w|\n|\Z)", stop.rest) is None:
        return None  # more than a word: a guard, or what another slip explains
    clauses = [
        sign for sign in ("where", "let", "relaxes", "explores", "defers", "tags", "cites") if sign in stop.signs
    ]
    shown = ", ".join(f"`{one}`" for one in clauses)
    return told(f"a rule goes on with {shown}; another item begins with `rewrite`, `operator`, ...; a comment with `#`")
