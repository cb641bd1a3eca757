"""Rules as other languages write them: variables with a sigil, wildcards, arrows, calls and clauses elsewhere."""

from __future__ import annotations

import re

from smartmem_rules.language.fixes import Edit, advice, edit, replacement
from smartmem_rules.language.parsing.slips.expressions import called
from smartmem_rules.language.parsing.slips.slip import Slip, all_of, line_end, told, written
from smartmem_rules.language.parsing.stops import Stop

_BEFORE_SIDES = re.compile(
    r"rewrite\s+\w+\s+in\s+\w+\s+(where|let|explores|relaxes|tags|cites|unsound)\b(?:\s+(?!\w+\s*\(\w+\s*\)\s*=>)\S*)?\s*$"
)
_VARIABLE = r"(?<![\w)\]])[?$%](?=[A-Za-z_])"
_OF_NO_SET = re.compile(r"(keep|derive|index|family|table)\s+\w+\s+(in)\s*$")


def patterns(stop: Stop) -> Slip | None:
    """What to write in the sides of a rule, and where its clauses stand."""
    before = stop.before
    if re.match(r"(rewrite|eliminate|index|derive|keep|family|table)\b", before) is None:
        return None
    return (
        _clauses_first(stop)
        or _other_rules(stop)
        or _heading(stop)
        or _guards(stop)
        or (_sides(stop) if re.search(r"\bwhere\b", before) is None else None)
        or _attributes(stop)
    )


def _clauses_first(stop: Stop) -> Slip | None:
    """`where` and others between the name of a rule and its sides."""
    early = _BEFORE_SIDES.match(stop.before)
    if early is None or "=>" in stop.before:
        return None
    begin = len(stop.text) - len(stop.before) + early.start(1)
    said = f"`{early[1]}` stands behind the sides: `rewrite NAME in RULESET`, `LEFT => RIGHT`, then `{early[1]} ...`"
    end = begin + len(early[1])
    return Slip(advice(said), stop.between(begin, end), f"`{early[1]}` cannot stand before the sides of the rule")


def _heading(stop: Stop) -> Slip | None:
    """`in algebra, eliminate`, braces round a rule, and a rule set without `in`."""
    place = len(stop.text)
    inside = re.match(r"(into|to|for|at|of|under)\s+\w+", stop.rest)
    if inside is not None and re.fullmatch(r"(rewrite|eliminate)\s+\w+\s*", stop.before):
        return written(stop, "write `in`", place, place + len(inside[1]), "in")
    order = re.search(r"\bin\s+\w+\s+((priority|benefit|cost|weight|order)\s*[=:]?\s*)$", stop.text)
    if order is not None and re.match(r"-?\d", stop.rest):
        end = place + len(re.match(r"-?[\d.]+", stop.rest)[0])  # type: ignore[index]
        message = "rules have no priority: levels and strategies order rule sets"
        return written(stop, "leave it out", order.start(1), end, "", message)
    if stop.found == "{" and re.fullmatch(r"rewrite\s+\w+\s+in\s+\w+\s*", stop.before):
        close = stop.whole.rfind("}")
        if close > place and not stop.whole[close + 1 :].strip():
            ends = re.compile(r";(?=\s*(?:\n|\}))").finditer(stop.whole, place)
            signs = [place, *(one.start() for one in ends), close]
            changes = (Edit(stop.between(at, at + 1), "") for at in signs)
            return Slip(edit("rules have no braces: `rewrite NAME in RULESET`, then `LEFT => RIGHT`", *changes))
    if re.fullmatch(r"rewrite\s+(?!in\b)[A-Za-z_]\w*\s+", stop.before) and re.match(r"[a-z_]\w*\s*\n", stop.rest):
        said = f"a rule names its rule set: `in {stop.found}`"
        return Slip(edit(said, Edit(stop.between(place, place), "in ")))
    if stop.found == "," and re.fullmatch(r"rewrite\s+\w+\s+in\s+\w+\s*", stop.before):
        more = re.match(r"(\s*,\s*\w+)+", stop.rest)
        if more is not None:
            said = "a rule belongs to one rule set; levels run several"
            return Slip(edit(said, Edit(stop.between(place, place + more.end()), "")))
    return None


def _other_rules(stop: Stop) -> Slip | None:
    """`eliminate`, `keep`, `derive` and `index` written as `rewrite` is."""
    before, place = stop.before, len(stop.text)
    start = place - len(before)
    of_none = _OF_NO_SET.match(before)
    if of_none is not None and re.fullmatch(r"\w+", stop.found):
        begin = start + of_none.start(2)
        message = f"`{of_none[1]}` belongs to no rule set"
        end = place + len(stop.found)
        return written(stop, f"leave `in {stop.found}` out", begin, end, "", message)
    if stop.found == "," and re.match(r"(eliminate|keep)\b", before) and re.search(r"[A-Z]\w*\s*$", before):
        return Slip(all_of(stop, "operators stand between `|`", r",(?=\s*[A-Z])", " |", place, line_end(stop)))
    listed = re.match(r"family\s+\w+\s*$", before) and re.match(r"[{\[(]([\w,;| \n]+)[}\])]", stop.rest)
    if listed:
        new = "= " + " | ".join(re.findall(r"\w+", listed[1]))
        return written(stop, f"write `{new}`", place, place + listed.end(), new)
    elimination = re.fullmatch(r"eliminate\s+\w+\s*", before)
    if elimination is not None and stop.found[:1].isupper():
        return Slip(
            edit("write `eliminate NAME in eliminate OPERATOR`", Edit(stop.between(place, place), "in eliminate "))
        )
    if stop.found == "(" and re.match(r"(eliminate|keep)\b", before) and re.search(r"\w\s*$", before):
        word = before.split()[0]
        if word == "eliminate" and re.match(r"[^\n]*(\n(?!\w)[^\n]*)*?=>", stop.rest):
            message = "an elimination names one operator; what has two sides is a `rewrite`"
            return written(stop, "write `rewrite`", start, start + len(word), "rewrite", message)
        operands = re.match(r"\([^()]*\)", stop.rest)
        said = f"`{word}` names the operator alone; its guards know its inputs by the names of its definition"
        if operands is not None:
            return Slip(edit(said, Edit(stop.between(place, place + operands.end()), "")))
        return told(said)
    arrow = re.match(r"derive\s+\w+\s+((?s:.*\)))\s*$", before)
    if stop.found == "=>" and arrow is not None:
        fact = re.match(r"=>\s*(\w+)\s*$", stop.whole[place : line_end(stop)])
        if fact is not None:
            begin, new = start + arrow.start(1), f"{fact[1]}({arrow[1]})"
            return written(
                stop, f"write `{new}`", begin, line_end(stop), new, "a fact is derived of a term, not rewritten to"
            )
    return None


def _guards(stop: Stop) -> Slip | None:
    """`a, and b`."""
    member = re.search(r"([A-Za-z_]\w*(?:\([^()]*\))?)\s+(not\s+)?$", stop.text)
    among = re.match(r"in\s*([\[({][^\[\](){}\n]*[\])}])", stop.rest)
    if stop.found == "in" and member is not None and among is not None:
        place = len(stop.text)
        new = f"{'not ' * bool(member[2])}contains([{among[1][1:-1]}], {member[1]})"
        return written(stop, f"write `{new}`", member.start(), place + among.end(), new)
    joined = re.search(r"(\s*,)\s*(and|or)\s*$", stop.text)
    if joined is None or re.search(r"\bwhere\b", stop.before) is None:
        return None
    message = f"a comma and `{joined[2]}` join guards twice"
    return written(stop, f"leave the comma before `{joined[2]}` out", *joined.span(1), "", message)


def _sides(stop: Stop) -> Slip | None:
    place = len(stop.text)
    rest = stop.rest
    if re.match(_VARIABLE, rest) and re.search(r"[(,\s>|]$", stop.text):
        return Slip(
            all_of(
                stop,
                f"tensors are plain names: leave `{rest[0]}` out",
                re.escape(rest[0]) + r"(?=[A-Za-z_])",
                "",
                place,
            )
        )
    return _compared(stop) or _arrow(stop) or _call(stop) or _alternatives(stop) or _separator(stop)


def _compared(stop: Stop) -> Slip | None:
    """Sides with `==` or `<=` between them, or with `from` and `to` before them."""
    before = stop.before
    start = len(stop.text) - len(before)
    if "=>" in stop.whole:
        return None
    worded = re.compile(r"rewrite\s+\w+\s+in\s+\w+\s+(from|match|replace)\s+(.+?)\s+(to|with|by|into)\s+", re.DOTALL)
    words = worded.match(stop.whole, start)
    if words is not None:
        begin, end = words.start(1), words.end()
        first = Edit(stop.between(begin, words.start(2)), "")
        return Slip(
            edit("write `LEFT => RIGHT`", first, Edit(stop.between(words.start(3), end), "=> ")),
            stop.between(begin, words.end(1)),
        )
    sides = re.match(r"rewrite\s+\w+\s+in\s+\w+\s+(\S[^\n]*?)\s*(==|<=|<-|===)\s*([^\n]*\S)\s*$", before)
    if sides is None or ("=>" not in stop.signs and stop.found != "the end of the text"):
        return None
    begin, end = start + sides.start(2), start + sides.end(2)
    if sides[2].startswith("<"):
        new = f"{sides[3]} => {sides[1]}"
        return written(
            stop, f"a rule is read from left to right: write `{new}`", start + sides.start(1), start + sides.end(3), new
        )
    return written(stop, "write `=>`, or `<=>` for a rule of both directions", begin, end, "=>")


def _arrow(stop: Stop) -> Slip | None:
    arrow = re.match(r"[^\w\s()\[\],;.\"'#{}]+(?=\s|\w|\()", stop.rest)
    if (
        arrow is not None
        and "=>" in stop.signs
        and re.search(r"[)\w]\s+$", stop.text)
        and arrow[0] not in ("|", "&", "&&")
    ):
        place = len(stop.text)
        both = arrow[0] in ("↔", "⇔", "⟺") or (arrow[0][0] == "<" and len(arrow[0]) > 1)
        sign = "<=>" if both else "=>"
        return written(stop, "write `=>`, or `<=>` for a rule of both directions", place, place + len(arrow[0]), sign)
    half = re.search(r"[-~=]$", stop.text)
    if stop.found.startswith(">") and half is not None and re.search(r"[)\w]\s*[-~=]$", stop.text):
        place = len(stop.text)
        end = place + len(stop.rest) - len(stop.rest.lstrip(">"))
        found = stop.whole[half.start() : end]
        said = "write `=>`, or `<=>` for a rule of both directions"
        return written(stop, said, half.start(), end, "=>", f"`{found}` cannot stand here")
    return None


def _call(stop: Stop) -> Slip | None:
    """`(Neg (Neg x))`, and wildcards."""
    place = len(stop.text)
    lisp = re.search(r"\(\s*[A-Z]\w*\s+(?:\([A-Z]\w*\s+|[\w.]+\s+)*$", stop.text)
    if lisp is not None and re.fullmatch(r"[\w.?$%()]+", stop.found):
        begin = stop.text.rfind("\n") + 1
        begin += len(stop.whole[begin:]) - len(stop.whole[begin:].lstrip())
        line = stop.whole[begin : line_end(stop)]
        code = line.partition("#")[0].rstrip()
        sides = [called(side, 2) for side in re.split(r"<?=>", code)]
        if all(len(side) == 1 for side in sides) and len(sides) == 2:
            new = f"{sides[0][0]} {'<=>' if '<=>' in code else '=>'} {sides[1][0]}"
            return written(stop, f"operands stand in parentheses: write `{new}`", begin, begin + len(code), new)
    mark = re.search(r"[(,]\s*(\*|\?)?\s*$", stop.text)
    if mark is not None and (stop.found in ("*", "?", "...") or (mark[1] and stop.found in (")", ","))):
        begin = mark.start(1) if mark[1] else place
        end = begin + (3 if stop.found == "..." else 1)
        where = stop.between(begin, end)
        said = "any tensor is a name, `Relu(x)`; equal names are equal tensors, and `*xs` is all operands of a list"
        return Slip(advice(said), where, f"`{stop.whole[begin:end]}` is no pattern")
    spread = re.search(r"\b(\w+)$", stop.text)
    if stop.found == "..." and spread is not None:
        return Slip(all_of(stop, f"write `*{spread[1]}`", r"\b([a-z]\w*)\.\.\.", r"*\1", spread.start()))
    return None


def _alternatives(stop: Stop) -> Slip | None:
    """`(Neg or Abs)(x)` and `(Neg, Abs)(x)`."""
    place = len(stop.text)
    begin = stop.text.rfind("(")
    words = re.compile(r"\(\s*[A-Z]\w*(?:\s*(?:,|\bor\b|\|\|)\s*[A-Z]\w*)+\s*\)(?=\s*\()").match(
        stop.whole, max(begin, 0)
    )
    if words is None:
        begin = stop.text.rfind("(", 0, max(begin, 0))
        words = re.compile(r"\(\s*[A-Z]\w*(?:\s*(?:,|\bor\b|\|\|)\s*[A-Z]\w*)+\s*\)(?=\s*\()").match(
            stop.whole, max(begin, 0)
        )
    if words is None or words.start() > place or words.end() < place:
        return None
    new = re.sub(r"\s*(,|\bor\b|\|\|)\s*", " | ", words[0])
    return written(stop, f"alternatives stand between `|`: write `{new}`", *words.span(), new)


def _separator(stop: Stop) -> Slip | None:
    if stop.found == ";" and re.search(r"\)\s*$", stop.text) and re.match(r";\s*[A-Z]\w*\(", stop.rest):
        end = line_end(stop)
        return Slip(all_of(stop, "patterns of one rule stand between commas", ";", ",", len(stop.text), end))
    if stop.found == ";" and re.match(r";[ \t]*(#.*)?(\n|$)", stop.rest):
        ends = r";(?=[ \t]*(?:#.*)?(?:\n|\Z))"
        return Slip(all_of(stop, "nothing ends with `;` here", ends, "", len(stop.text)))
    return None


def _attributes(stop: Stop) -> Slip | None:
    """`axes == a`, `**attrs` and `.axis` for attributes."""
    place = len(stop.text)
    if (
        stop.found in ("**", "*", "...")
        and re.search(r";\s*$", stop.text)
        and re.match(r"(\*\*?|\.\.\.)\w+", stop.rest)
    ):
        sign = re.escape(stop.found)
        return Slip(all_of(stop, "all attributes together are `@NAME`", rf"{sign}(?=\w+\s*\))", "@", place))
    if re.search(r"\)\.$", stop.text) and stop.found.isidentifier() and re.search(r"\bwhere\b", stop.before) is None:
        number = re.match(r"outputs?\[(\d+)\]", stop.rest)
        if number is not None:
            new = f".{number[1]}" if number[1] != "0" else ""
            said = "`Op(...).1` is the second output, `Op(...)` alone the first"
            return written(stop, said, place - 1, place + number.end(), new)
        if stop.found.startswith("output"):
            return told("`Op(...).1` is the second output, `Op(...)` alone the first")
        return told(
            "an output is told by its number, `Op(...).0` for the first; "
            f"an attribute is bound by a name of its own: `Op(x; {stop.found} = a)`, then `a`"
        )
    if re.fullmatch(r"\.\d+", stop.found) and (named := re.search(r"\b([a-z]\w*)$", stop.text)):
        let = re.search(rf"\blet\s+{named[1]}\s*=\s*([^\n]*\S)", stop.whole)
        term = let[1] if let is not None else "Op(...)"
        return told(f"a `let` names one output: `let {named[1]} = {term}{stop.found}`, then `{named[1]}`")
    if stop.found in ("not", "the character `!") and re.search(r"[(,]\s*$", stop.text) and "where" not in stop.before:
        return told("a pattern cannot exclude an operator: bind a name, and write in a guard what must hold of it")
    doubled = re.search(r"[;,]\s*\w+\s*(=)$", stop.text)
    if stop.found in ("=", "==") and doubled is not None and re.search(r"\(\s*[^()]*;", stop.text):
        return Slip(replacement("an attribute is given by one `=`", stop.here(len(stop.found)), ""))
    return None
