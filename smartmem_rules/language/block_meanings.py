"""What authors mean by subjects, keys and values that blocks do not have: by the block's other keys, or by words of
other systems."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from smartmem_rules.language.blocks.keys import Key, keys_of
from smartmem_rules.language.blocks.schedule import CONTRACTIONS
from smartmem_rules.language.fixes import Edit, Fix, advice, edit, replacement
from smartmem_rules.language.schema import SUBJECTS, record_type
from smartmem_rules.language.syntax import Block, Entry, Span
from smartmem_rules.language.vocabulary import BLOCK_WORDS

_SUBJECTS = {
    **dict.fromkeys(("matmul", "gemm", "dot", "mm", "bmm", "product", "linear", "dense", "einsum"), "contraction"),
    **dict.fromkeys(("elementwise", "map", "unary", "binary", "injective"), "pointwise"),
    **dict.fromkeys(("reduce", "norm", "softmax", "sum"), "reduction"),
    **dict.fromkeys(("pool", "pooling", "stencil", "depthwise"), "window"),
    **dict.fromkeys(("recurrence", "recurrent", "rnn", "lstm", "gru", "loop"), "scan"),
}
_LIMITS = {
    **dict.fromkeys(
        ("iterations", "iteration", "iters", "iter", "steps", "times", "limit", "repeat", "until"), "rounds"
    ),
    **dict.fromkeys(("nodes", "node_limit", "rows", "size", "max_nodes"), "enodes"),
    **dict.fromkeys(("time", "timeout", "time_limit", "secs", "sec", "s"), "seconds"),
}
_JOINING = frozenset({"into", "in", "of", "for", "and", "a", "by"})
_FREE = 4
"""Keys that a block may lack for them to be listed where another one stands."""
_UNITS = {
    **dict.fromkeys(("b", "byte", "bytes"), 1),
    **dict.fromkeys(("k", "kb", "kib"), 1 << 10),
    **dict.fromkeys(("m", "mb", "mib"), 1 << 20),
    **dict.fromkeys(("g", "gb", "gib"), 1 << 30),
}
_OTHER_UNITS = frozenset({"s", "ms", "us", "ns", "hz", "khz", "mhz", "ghz", "flops", "gflops", "tflops", "bits"})
_DTYPES = {
    **dict.fromkeys(("half", "fp16", "f16"), "float16"),
    **dict.fromkeys(("float", "single", "fp32", "f32"), "float32"),
    **dict.fromkeys(("bf16", "bfloat"), "bfloat16"),
}
_TRUTHS = {"true": 1, "on": 1, "yes": 1, "false": 0, "off": 0, "no": 0}


def subjects_meant(block: Block) -> tuple[str, ...]:
    """What a block may be for by its keys, or by a word of other systems: the one meant, or all that would do."""
    given = {entry.key for entry in block.entries}
    templates = [str(entry.values[0]) for entry in block.entries if entry.key == "template" and entry.values]
    template = templates[0] if templates else ""
    subjects = SUBJECTS.get(block.kind, ())
    fitting: list[tuple[int, str]] = []
    for subject in subjects:
        keys = {key.name: key for key in keys_of(record_type(block.kind, subject, template))}
        if given <= set(keys):
            fitting.append((sum(key.required and name not in given for name, key in keys.items()), subject))
    word = _SUBJECTS.get((block.subject or "").lower())
    found = tuple(subject for _, subject in sorted(fitting, key=lambda one: one[0]))
    return (word,) if word in subjects and (not found or word in found) else found


def as_meant(block: Block) -> Block:
    """The block with the subject that it means, where that can be told."""
    subjects = SUBJECTS.get(block.kind, ())
    if not subjects or block.subject in subjects:
        return block
    meant = subjects_meant(block)
    return block if len(meant) != 1 else replace(block, subject=meant[0])


def at_home(block: Block, entry: Entry) -> Fix | None:
    """Where a key belongs that blocks of this kind and subject do not have, and which of theirs may be meant."""
    key = entry.key
    others = [one for one in SUBJECTS.get(block.kind, ()) if key in _names(block.kind, one) and one != block.subject]
    if block.kind == "schedule" and block.subject == "contraction":
        templates = [one for one in CONTRACTIONS if key in _keys(block.kind, block.subject, one)]
        if templates:
            return advice(f"leave it out; the template {' and '.join(templates)} has it: `template {templates[0]};`")
    if others and block.subject in SUBJECTS[block.kind]:
        has = f"`{key}` is a key of blocks for {' and '.join(others)}"
        otherwise = f"leave it out: {has}, `{block.kind} NAME for {others[0]}`"
        return _own_meant(block, entry, has, otherwise)
    kinds = [kind for kind in BLOCK_WORDS if kind not in SUBJECTS and kind != block.kind and key in _names(kind, None)]
    if kinds == ["strategy"]:
        return advice(
            "phases stand in a block of their own, `strategy NAME { phase algebra; }`, which a level names: "
            "`strategy NAME;`"
        )
    if block.kind == "strategy" and key == "rulesets":
        return advice("each phase names its rule sets: `phase eliminate; phase recognise algebra;`")
    if len(kinds) == 1:
        return advice(f"leave it out; it is a key of `{kinds[0]}` blocks: `{kinds[0]} NAME {{ {key} ...; }}`")
    return None


def _own_meant(block: Block, entry: Entry, has: str, otherwise: str) -> Fix:
    """The keys of a block that may be meant by one of other blocks, which is the text `has`."""
    own = _free_keys(block, entry)
    if not own:
        return advice(otherwise)
    values = " ".join(map(str, entry.values))
    shown = [f"`{one.name} {values};` ({one.meaning})" for one in own]
    meant = " or ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
    return advice(f"{otherwise}; if a key of these blocks is meant, write {meant}")


def _free_keys(block: Block, entry: Entry) -> list[Key]:
    """The keys that a block does not give yet and that take the values of an entry; of many those like its own."""
    given = {one.key for one in block.entries}
    kinds = {"word" if isinstance(value, str) else "number" for value in entry.values}
    found = [
        key
        for key in keys_of(record_type(block.kind, block.subject, ""))
        if key.name not in given and {key.kind} == kinds
        if len(entry.values) >= key.least and (key.most is None or len(entry.values) <= key.most)
        if not key.choices or set(map(str, entry.values)) <= set(key.choices)
        if all(key.range_at(place).admits(n) for place, n in enumerate(entry.values) if not isinstance(n, str))
        if not key.whole or all(float(n).is_integer() for n in entry.values if not isinstance(n, str))
    ]
    if len(found) > _FREE:
        near = alike(entry.key, [key.name for key in found])[:_FREE]
        found = [key for key in found if key.name in near]
    return found


def name_meant(word: str, names: Collection[str], place: Span) -> Fix | None:
    """The block that is named by other systems' words for what it is for: `producer_into_matmul`."""
    new = "_".join(_SUBJECTS.get(part, part) for part in word.lower().split("_"))
    return replacement(f"write `{new}`", place, new) if new in names else None


def alike(word: str, names: Collection[str]) -> list[str]:
    """The names that have some words of another one in common, those with most first."""
    parts = set(word.lower().split("_"))
    shared = {name: len(parts & set(name.split("_")) - _JOINING) for name in names}
    return sorted((name for name in names if shared[name]), key=lambda name: (-shared[name], name))


def _keys(kind: str, subject: str | None, template: str) -> set[str]:
    return {key.name for key in keys_of(record_type(kind, subject, template))}


def _names(kind: str, subject: str | None) -> set[str]:
    found = _keys(kind, subject, "")
    if kind == "schedule" and subject == "contraction":
        for template in CONTRACTIONS:
            found |= _keys(kind, subject, template)
    return found


def limit_meant(values: Sequence[object], number: int, entry: Entry) -> Fix | None:
    """The limit of a phase that other systems call by the word at some place before a number."""
    word = str(values[number])
    follows = values[number + 1] if number + 1 < len(values) else None
    if not isinstance(follows, int | float):
        return None
    place = entry.place(f"value:{number}")
    meant = _LIMITS.get(word.lower())
    if meant is None:
        return advice(f"the limits of a phase are `rounds {follows}`, `enodes {follows}` and `seconds {follows}`")
    return replacement(f"write `{meant} {follows}`", place, meant)


def glued(entry: Entry) -> Iterator[tuple[int, str, Fix]]:
    """Numbers with a unit behind them, and several written as one: which value, how they stand, and what to do."""
    for number, (first, second) in enumerate(zip(entry.values, entry.values[1:], strict=False)):
        places = [entry.place(f"value:{at}") for at in (number, number + 1)]
        if isinstance(first, str) or not isinstance(second, str):
            continue
        if (places[0].end_line, places[0].end_column) != (places[1].line, places[1].column):
            continue
        whole = places[0]._replace(end_column=places[1].end_column)
        several = re.fullmatch(r"((?:[xX]\d+)+)", second)
        if several is not None:
            new = " ".join((str(first), *re.split(r"[xX]", second)[1:]))
            yield number, f"{first}{second}", edit(f"numbers stand apart by blanks: write `{new}`", Edit(whole, new))
            continue
        new = str(int(first * _UNITS[second.lower()])) if second.lower() in _UNITS else str(first)
        yield number, f"{first}{second}", edit(f"a number has no unit: write `{new}`", Edit(whole, new))


def unit_meant(key: Key, entry: Entry) -> tuple[int, str, Fix] | None:
    """A unit that stands apart behind a number: its place among the values, what is wrong, and what to do."""
    if key.kind != "number":
        return None
    for number, (size, unit) in enumerate(zip(entry.values, entry.values[1:], strict=False)):
        word = str(unit).lower()
        if isinstance(size, str) or not isinstance(unit, str) or word not in _UNITS.keys() | _OTHER_UNITS:
            continue
        message = f"`{key.name}` takes a number without its unit, not `{size} {unit}`"
        place, end = entry.place(f"value:{number}"), entry.place(f"value:{number + 1}")
        whole = place._replace(end_line=end.end_line, end_column=end.end_column)
        if key.meaning.startswith("bytes") and word in _UNITS:
            new = str(int(size * _UNITS[word]))
            return number + 1, message, edit(f"the number counts bytes: write `{new}`", Edit(whole, new))
        if word in re.findall(r"[a-z]+(?!/)", f"{key.name.replace('_', ' ')} {key.meaning}".lower()):
            return number + 1, message, edit(f"leave the unit out: write `{size}`", Edit(whole, str(size)))
        said = f"leave `{unit}` out, and write the number in the unit that `{key.name}` has"
        return number + 1, message, advice(said)
    return None


def joined_meant(key: Key, entry: Entry) -> Fix | None:
    """The one word that is meant by several, as `texture gpu` for `texture_gpu`."""
    joined = "_".join(map(str, entry.values))
    if joined not in key.choices or len(entry.values) < 2:
        return None
    last = entry.place(f"value:{len(entry.values) - 1}")
    whole = entry.place("value:0")._replace(end_line=last.end_line, end_column=last.end_column)
    return replacement(f"write `{joined}`", whole, joined)


def value_meant(key: Key, value: object, entry: Entry, number: int) -> Fix | None:
    """A value as its key takes it: numbers without quotes, truths as `yes` and `no` or 1 and 0."""
    place, word = entry.place(f"value:{number}"), str(value)
    truth = _TRUTHS.get(word.lower())
    if key.kind == "number":
        if re.fullmatch(r"-?\d+(\.\d+)?", word):
            return replacement(f"write `{word}`, without quotes", place, word)
        return replacement(f"write `{truth}`", place, str(truth)) if truth is not None else None
    other = _DTYPES.get(word.lower()) or _SUBJECTS.get(word.lower())
    if other is not None and other in key.choices:
        return replacement(f"write `{other}`", place, other)
    if set(key.choices) == {"yes", "no"}:
        if truth is None and value in (0, 1):
            truth = int(bool(value))
        if truth is not None:
            new = "yes" if truth else "no"
            return replacement(f"write `{new}`", place, new)
    return None


def no_expression(text: str, place: Span) -> tuple[str, Fix] | None:
    """Why a text is no regular expression, and the one that is meant: a star for any text, or signs for themselves."""
    try:
        re.compile(text)
    except re.error as error:
        stars = re.sub(r"(?<![\w.)\]}])\*", ".*", text)
        signs = re.sub(r"[*+?(){}\[\]|^$]", lambda sign: f"[{sign[0]}]", text)
        new = next((one for one in (stars, signs) if _compiles(one)), "")
        if not new or "\\" in text or '"' in text or "^" in text:
            return error.msg, advice("write a text that it can be found by: `Mali-G7[0-9]`, `Adreno.*6`")
        said = "any text is `.*`" if new == stars else "a sign that stands for itself is in brackets"
        return error.msg, replacement(f'{said}: write `"{new}"`', place, f'"{new}"')
    return None


def _compiles(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True
