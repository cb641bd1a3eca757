"""The first lines of rules, families and functions, compared with the form that they have."""

from __future__ import annotations

import re

from smartmem_rules.language.fixes import Edit, advice, edit, nearest
from smartmem_rules.language.parsing.slips.slip import Slip, line_end, written
from smartmem_rules.language.parsing.stops import Stop
from smartmem_rules.language.vocabulary import ATTRIBUTE_KINDS, BLOCK_WORDS, DTYPE_WORDS, ITEM_WORDS

_OTHERS = {
    **dict.fromkeys(("constant", "define", "set", "val", "var", "global"), "let"),
    **dict.fromkeys(("guard", "check", "condition", "bool", "pred", "test", "prop"), "predicate"),
    **dict.fromkeys(("pattern", "replace", "transform", "optimization", "simplify", "equation", "fold"), "rewrite"),
    **dict.fromkeys(("foreach", "forall", "each"), "for"),
    **dict.fromkeys(("fusion", "fusions"), "fuse"),
    **dict.fromkeys(("fact", "facts", "lattice"), "analysis"),
    **dict.fromkeys(("deduce", "infer", "implies"), "derive"),
    **dict.fromkeys(("profile", "gpu", "cpu", "target", "machine", "accelerator", "hardware"), "device"),
    **dict.fromkeys(("lambda", "macro", "proc", "helper"), "function"),
    **dict.fromkeys(("alias", "group", "union"), "family"),
    **dict.fromkeys(("pipeline", "preset", "optimizer"), "level"),
    **dict.fromkeys(("tile", "tiling", "mapping"), "schedule"),
    **dict.fromkeys(("use", "load", "require"), "import"),
    "rules": "ruleset",
}
_TYPES = DTYPE_WORDS | ATTRIBUTE_KINDS | {"double", "long", "auto", "Tensor", "const", "var", "T"}
_FAMILY = re.compile(r"family\s+\w+\s*(?P<rest>[:=]?[^\n]*)")


def names_first(stop: Stop) -> Slip | None:
    """What to write for an unknown word, or in the first line of an item."""
    return _word(stop) or _family(stop) or _parameters(stop) or _rule(stop)


def _word(stop: Stop) -> Slip | None:
    """A line that begins with a word that begins no item."""
    if not stop.at_item() or stop.line[:1].isspace():
        return None
    place = len(stop.text)
    two = re.match(r"rule\s+set\s+(?=\w)", stop.rest)
    if two is not None:
        return written(stop, "write `ruleset`", place, place + two.end(), "ruleset ")
    word = re.match(r"([a-z_]\w*)[ \t]+(\"?[\w.]+\"?)", stop.rest)
    if word is None or word[1] not in _OTHERS or nearest(word[1], (*ITEM_WORDS, *BLOCK_WORDS)) == word[1]:
        return None
    new = _OTHERS[word[1]]
    message = f"`{word[1]}` begins no item"
    line = stop.whole[place : line_end(stop)]
    if (new == "rewrite" and re.search(r"\bin\s+\w+\s*[:{]?$", line) is None) or (
        len(line.split()) > 4 and not re.search(r"[=(){}\"]", line)
    ):
        return None
    if new == "import":
        file = word[2].strip('"')
        file += "" if "." in file else ".smr"
        return written(stop, f'write `import "{file}"`', place, place + word.end(), f'import "{file}"', message)
    if new == "let" and "=" not in line:
        value = re.match(r"\w+\s+(\w+)\s+(-?[\d.]+|\"[^\"\n]*\")\s*$", line)
        if value is None:
            return None
        shown = f"let {value[1]} = {value[2]}"
        return written(stop, f"write `{shown}`", place, line_end(stop), shown, message)
    return written(stop, f"write `{new}`", place, place + len(word[1]), new, message)


def _family(stop: Stop) -> Slip | None:
    """`family Rect = [Relu, Abs]`, `Relu or Abs` and `"Relu" | "Abs"`."""
    begin = len(stop.text) - len(stop.before)
    head = _FAMILY.match(stop.whole, begin)
    if head is None or len(stop.text) > head.end() + 1 or stop.found == ";":
        return None
    rest = head["rest"].rstrip()
    begin = head.start("rest")
    equal = re.match(r"=\s*", rest)
    if equal is not None:
        begin, rest = begin + equal.end(), rest[equal.end() :]
    names = [one for one in re.findall(r"[A-Za-z_]\w*", re.sub(r"\([^()]*\)", "", rest) or rest)
             if one not in ("or", "and", "union")]  # fmt: skip
    names = names or [one for one in re.findall(r"[A-Za-z_]\w*", rest) if one not in ("or", "and", "union")]
    if not names or not all(one[:1].isupper() for one in names):
        return None
    new = f"{'' if equal is not None else '= '}{' | '.join(names)}"
    return written(stop, f"members stand between `|`: write `{new}`", begin, begin + len(rest), new)


def _parameters(stop: Stop) -> Slip | None:
    """`predicate small x = ...`, `function half[a] = ...` and `function half(int a) = ...`."""
    begin = len(stop.text) - len(stop.before)
    bare = re.compile(r"(function|predicate)\s+(\w+)(\s+|\s*\[\s*)([a-z]\w*(?:[\s,]+[a-z]\w*)*)\s*\]?\s*=(?!=)").match(
        stop.whole, begin
    )
    if bare is not None and begin + bare.start(3) - bare.start() <= len(stop.text) <= bare.end():
        names = ", ".join(re.findall(r"[a-z]\w*", bare[4]))
        new = f"({names}) ="
        return written(stop, f"parameters stand in parentheses: write `{bare[2]}{new[:-2]}`", bare.start(3), bare.end(),
                       new)  # fmt: skip
    typed = re.compile(r"(?:function|predicate)\s+\w+\s*\(([^()\n]*)\)").match(stop.whole, begin)
    if typed is None or not typed.start(1) <= len(stop.text) <= typed.end(1):
        return None
    parts = [part.split() for part in typed[1].split(",")]
    if all(len(part) == 2 and part[0] in _TYPES and part[1].isidentifier() for part in parts):
        new = ", ".join(part[1] for part in parts)
        return written(stop, f"parameters have no types: write `({new})`", *typed.span(1), new)
    stars = re.sub(r"\*+\s*(?=\w)", "", typed[1])
    if stop.found in ("*", "**") and stars != typed[1]:
        said = f"a parameter is one value, which may be a list: write `({stars})`"
        return written(stop, said, *typed.span(1), stars)
    return None


def _rule(stop: Stop) -> Slip | None:
    """`rewrite NAME(x) in algebra`, `from algebra`, `in ruleset algebra` and `twice.Op`."""
    begin = len(stop.text) - len(stop.before)
    place = len(stop.text)
    if re.match(r"(rewrite|eliminate)\b", stop.before) is None:
        return None
    called = re.compile(r"(?:rewrite|eliminate)\s+\w+\s*(\([^()\n]*\))\s*in\b").match(stop.whole, begin)
    if called is not None and place <= called.end():
        return written(stop, "a rule has no parameters: leave them out", *called.span(1), "")
    word = re.compile(r"(?:rewrite|eliminate)\s+\w+\s+(from|into|within|inside|@|<-|of|for|under)\s+\w+\s*\n").match(
        stop.whole, begin
    )
    if word is not None and place <= word.end(1):
        return written(stop, "write `in`", *word.span(1), "in")
    doubled = re.compile(r"(?:rewrite|eliminate)\s+\w+\s+in\s+((?:ruleset|set|rules|group)\s+)[a-z]\w*").match(
        stop.whole, begin
    )
    if doubled is not None and doubled.end(1) <= place:
        return written(
            stop, f"leave `{doubled[1].strip()}` out: the name alone says the rule set", *doubled.span(1), ""
        )
    member = re.compile(r"(?:rewrite|eliminate)\s+\w+((?:\.|_?\{\s*|_?\$\{?|<)\w+\s*[}>]?)\s+in\b").match(
        stop.whole, begin
    )
    if member is not None and begin < place <= member.end():
        said = "the member's name is added by itself, as in `NAME.Relu`: leave it out"
        return Slip(edit(said, Edit(stop.between(*member.span(1)), "")), stop.between(*member.span(1)))
    unnamed = re.compile(r"(rewrite|eliminate)(\s+)in\s+(\w+)\s*\n").match(stop.whole, begin)
    if unnamed is not None and place <= unnamed.end():
        said = f"a rule has a name: `{unnamed[1]} NAME in {unnamed[3]}`"
        return Slip(advice(said), stop.between(unnamed.start(), unnamed.end(3)), "this rule has no name")
    return None
