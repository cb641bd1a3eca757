"""Values of blocks and cells of tables with signs that they do not take, and the first lines of blocks."""

from __future__ import annotations

import re

from smartmem_rules.language.fixes import Edit, advice, edit
from smartmem_rules.language.parsing.slips.slip import Slip, written
from smartmem_rules.language.parsing.stops import Stop
from smartmem_rules.language.schema import keys_of_kind
from smartmem_rules.language.vocabulary import BLOCK_WORDS

_BLOCK = re.compile(rf"(?:{'|'.join(BLOCK_WORDS)})\b[^{{]*\{{")
_KEY = re.compile(r"[;{\n]\s*(\w+)\s+([^;{}\n]*)\Z")
_PASSES = ("schedule", "fuse")


def block_values(stop: Stop) -> Slip | None:
    """What to write in a block, a table or the first line of one."""
    if _BLOCK.match(stop.before):
        return _text(stop) or _thousands(stop) or _sizes(stop) or _separated(stop) or _nested(stop) or _ended(stop)
    if re.match(rf"(?:{'|'.join(BLOCK_WORDS)})\b", stop.before):
        return _heading(stop)
    if re.match(r"table\b", stop.before):
        return _cells(stop)
    return _section(stop)


def _entry(stop: Stop) -> tuple[str, int, int]:
    """The key of the entry that the place lies in, and where its values begin and end."""
    key = _KEY.search(stop.text)
    if key is None:
        return "", 0, 0
    stopped = re.compile(r"[;\n}]").search(stop.whole, len(stop.text))
    end = stopped.start() if stopped is not None else len(stop.whole)
    return key[1], key.start(2), end


def _texts() -> frozenset[str]:
    return frozenset(key.name for kind in BLOCK_WORDS for key in keys_of_kind(kind) if key.kind == "text")


def _text(stop: Stop) -> Slip | None:
    """`match 'My.*';` and `match /My.*/;`, and what stands unquoted in a `workaround`."""
    key, begin, end = _entry(stop)
    value = stop.whole[begin:end].strip()
    quoted = re.fullmatch(r"'([^']*)'|/([^/]*)/|`([^`]*)`", value)
    if key in _texts() and quoted is not None:
        new = f'"{next(filter(None, quoted.groups()), "")}"'
        return written(stop, f"text stands between double quotes: write `{new}`", begin, begin + len(value), new)
    place = len(stop.text)
    bare = re.match(r"(?:-\S+|[<>=]=?\s*\d[\w.]*(?:\s*,?\s*[<>]=?\s*\d[\w.]*)*)(?=\s)", stop.rest)
    if key == "workaround" and bare is not None:
        new = f'"{bare[0]}"'
        return written(stop, f"text stands between double quotes: write `{new}`", place, place + bare.end(), new)
    return None


def _thousands(stop: Stop) -> Slip | None:
    """`5,000`, where a key takes one number."""
    number = re.search(r"(?<![\w.])(\d{1,3})\Z", stop.text)
    rest = re.match(r"(?:,\d{3})+(?![\d.]*\s*,)", stop.rest)
    key, begin, _ = _entry(stop)
    if stop.found != "," or number is None or rest is None or number.start(1) != begin or _takes(key) != 1:
        return None
    new = (number[1] + rest[0]).replace(",", "")
    return written(stop, f"write `{new}`", number.start(1), len(stop.text) + rest.end(), new)


def _takes(key: str) -> int:
    """How many values a key takes; 0 where that is open, or no block has it."""
    known = [one for kind in BLOCK_WORDS for one in keys_of_kind(kind) if one.name == key]
    counts = {one.most if one.most == one.least else 0 for one in known}
    return next(iter(counts)) or 0 if len(counts) == 1 else 0


def _sizes(stop: Stop) -> Slip | None:
    """`image2d 16384 * 16384`, which are two numbers."""
    key, begin, end = _entry(stop)
    value = stop.whole[begin:end].strip()
    numbers = re.findall(r"\d+", value)
    if len(numbers) < 2 or _takes(key) != len(numbers) or not re.fullmatch(r"\d+(?:\s*[*×x]\s*\d+)+", value):
        return None
    new = " ".join(numbers)
    return written(stop, f"numbers stand beside each other: write `{key} {new};`", begin, begin + len(value), new)


def _separated(stop: Stop) -> Slip | None:
    """`storage float32 | float16;`."""
    key, begin, end = _entry(stop)
    value = stop.whole[begin:end]
    if stop.found not in ("|", "+", "&") or not key or re.fullmatch(r"[\w\s|+&]+", value) is None:
        return None
    new = " ".join(re.findall(r"\w+", value))
    return written(stop, f"values stand apart by blanks: write `{key} {new};`", begin, begin + len(value.rstrip()), new)


def _nested(stop: Stop) -> Slip | None:
    """`phase eliminate { rounds 8; }` and `strategy { phase algebra; }`."""
    place = len(stop.text)
    limits = re.match(r"\{\s*((?:\w+\s*[:=]?\s*\d+\s*[;,]?\s*)+)\}\s*;?", stop.rest)
    if limits is not None and re.search(r"\bphase\b[^;{}]*\w\s*\Z", stop.text):
        new = " ".join(re.findall(r"\w+", limits[1]))
        return written(
            stop, f"limits stand behind the rule sets: write `{new};`", place, place + limits.end(), f"{new};"
        )
    key = re.search(r"[;{\n]\s*(\w+)\s*(?:\w+\s*)?\Z", stop.text)
    if stop.found == "{" and key is not None and key[1] in BLOCK_WORDS and re.match(r"\{[^{}]*;[^{}]*\}", stop.rest):
        said = f"a block stands by itself: write `{key[1]} NAME {{ ... }}` outside, and `{key[1]} NAME;` here"
        return Slip(advice(said), stop.between(key.start(1), place + 1), "no block stands inside of another")
    return None


def _ended(stop: Stop) -> Slip | None:
    """The last entry without `;`."""
    if stop.found != "}" or "SEMICOLON" not in stop.accepted:
        return None
    end = len(stop.text.rstrip())
    body = stop.text[stop.text.find("{") + 1 : end]
    if re.search(r"[\w\"][ \t]*\n", body):
        return None
    fix = edit("each key with its values ends with `;`", Edit(stop.between(end, end), ";"))
    return Slip(fix, stop.between(end - 1, end), "`;` is missing here")


def _heading(stop: Stop) -> Slip | None:
    """`fuse mine: prologue {`, `fuse for prologue {` and `device mine:`."""
    place = len(stop.text)
    begin = place - len(stop.before)
    kind = stop.before.split()[0]
    unnamed = re.compile(r"\w+(\s+)for\s+\"?(\w+)\"?\s*\{").match(stop.whole, begin)
    if unnamed is not None:
        said = f"a block has a name: `{kind} NAME for {unnamed[2]} {{`"
        return Slip(advice(said), stop.between(begin, unnamed.end(2)), "this block has no name")
    subject = re.compile(r"\w+\s+\w+\s*(:|->|=|\bin\b|\bof\b|\bto\b|\bas\b|\()\s*\"?(\w+)\"?\s*\)?\s*(?=\{)").match(
        stop.whole, begin
    )
    if kind in _PASSES and subject is not None:
        blank = "" if stop.whole[subject.start(1) - 1].isspace() else " "
        new = f"{blank}for {subject[2]} "
        return written(stop, f"write `{new.strip()}`", subject.start(1), subject.end(), new)
    heritage = re.compile(r"\w+\s+\w+\s+((?:after|before|with|over|on)\s+\w+)\s*\{").match(stop.whole, begin)
    if heritage is not None and kind not in _PASSES:
        return written(stop, "no block takes keys from another: leave it out", *heritage.span(1), "")
    quoted = re.match(r"\"(\w+)\"", stop.rest)
    if quoted is not None and "NAME" in stop.accepted:
        return written(stop, "names stand without quotes", place, place + quoted.end(), quoted[1])
    opened = re.match(r":[ \t]*(#.*)?\n", stop.rest)
    if stop.found == ":" and opened is not None:
        last = len(stop.whole.rstrip())
        closed = "}" in stop.rest
        closing = [] if closed else [Edit(stop.between(last, last), "\n}")]
        return Slip(edit("entries stand in braces: write `{`", Edit(stop.between(place, place + 1), " {"), *closing))
    return None


def _cells(stop: Stop) -> Slip | None:
    """Cells in quotes, `break / none`, and `table NAME(first, second):`."""
    place = len(stop.text)
    quoted = re.match(r'"([\w/.]+)"', stop.rest)
    if quoted is not None and "{" in stop.text:
        return written(stop, f"cells stand without quotes: write `{quoted[1]}`", place, place + quoted.end(), quoted[1])
    parted = re.search(r"([\w.]+)\s*\Z", stop.text)
    rest = re.match(r"/\s*([\w.]+)", stop.rest)
    if parted is not None and rest is not None and "{" in stop.text:
        new = f"{parted[1]}/{rest[1]}"
        return written(stop, f"a cell is one word: write `{new}`", parted.start(1), place + rest.end(), new)
    if stop.found == ":" and "{" not in stop.line and re.fullmatch(r"table\s+\w+\s*\([^()]*\)\s*", stop.before):
        return written(stop, "the lines of a table stand in braces: write `{`", place, place + 1, " {")
    more = re.compile(r"table\s+\w+\s*(\[)([^\]\n]*)\]").match(stop.whole, place - len(stop.before))
    if more is not None and stop.found == "[":
        return written(stop, f"write `({more[2]})`", more.start(1), more.end(), f"({more[2]})")
    return None


def _section(stop: Stop) -> Slip | None:
    """`[device.mine]`, as in TOML."""
    section = re.match(r"\[\s*(\w+)[.\s]+\"?(\w+)\"?\s*\]", stop.rest)
    if section is None or section[1] not in BLOCK_WORDS or not stop.at_item():
        return None
    said = f"a block reads `{section[1]} {section[2]} {{ KEY VALUE; ... }}`"
    place = len(stop.text)
    return Slip(advice(said), stop.between(place, place + section.end()), "this is TOML's form")
