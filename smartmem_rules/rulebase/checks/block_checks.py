"""What is wrong with blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from smartmem_rules.language import syntax as s
from smartmem_rules.language.block_meanings import (
    alike,
    as_meant,
    at_home,
    glued,
    joined_meant,
    limit_meant,
    name_meant,
    no_expression,
    subjects_meant,
    unit_meant,
    value_meant,
)
from smartmem_rules.language.blocks.keys import Key, values_of
from smartmem_rules.language.blocks.strategy import LIMITS, PhaseError, phase_of, rulesets_of
from smartmem_rules.language.blocks.workarounds import ClauseError, effects_shown, workaround_of
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.fixes import (
    Edit,
    Fix,
    advice,
    any_of,
    before,
    edit,
    inserted,
    nearest,
    replacement,
    spelling,
)
from smartmem_rules.language.schema import SUBJECTS, keys_of_block, keys_of_kind
from smartmem_rules.rulebase.checks.meant.numbers import out_of_range

Known = Mapping[str, Collection[str]]
"""The names of items by kind: `ruleset`, `table`, `fuse`."""


def check_block(block: s.Block, known: Known) -> Iterator[Diagnostic]:
    """The problems of one block against the schema of its kind."""
    yield from _check_subject(block)
    block = as_meant(block)
    judged = block.subject in SUBJECTS.get(block.kind, (block.subject,))
    # of what is for nothing known, any key of its kind may be meant
    keys = {key.name: key for key in (keys_of_block(block) if judged else keys_of_kind(block.kind))}
    first: dict[str, s.Entry] = {}
    for entry in block.entries:
        key = keys.get(entry.key)
        swallowed = _swallowed(entry, keys)
        if swallowed:
            place = entry.place(f"value:{swallowed - 1}")
            message = f"`;` is missing behind `{entry.values[swallowed - 1]}`"
            fix = inserted("each key with its values ends with `;`", place, ";")
            yield Diagnostic(Code.BAD_VALUE, "error", message, place, fix=fix)
            first.update({str(value): entry for value in (entry.key, *entry.values) if value in keys})
            continue
        if key is None:
            near = (
                _bare_phase(block, entry, known)
                or at_home(block, entry)
                or spelling(entry.key, keys, entry.place("key"))
            )
            note = None if near else f"its keys are {', '.join(keys)}"
            fix = near or advice(f"leave it out, or write one of its keys: {any_of(keys, 6)}")
            message = f"{_called(block)} has no key `{entry.key}`"
            yield Diagnostic(Code.UNKNOWN_KEY, "error", message, entry.place("key"), note=note, fix=fix)
            continue
        if entry.key in first and not key.repeats:
            message = f"`{entry.key}` is given twice"
            fix = replacement("leave one of them out", entry.span, "")
            earlier = (first[entry.key].place("key"), "the first is here")
            yield Diagnostic(Code.REPEATED_KEY, "error", message, entry.place("key"), secondary=earlier, fix=fix)
        first.setdefault(entry.key, entry)
        yield from _check_values(entry, key, known)
    meant = {nearest(entry.key, keys) for entry in block.entries if entry.key not in keys}
    missing = [key for key in keys.values() if key.required and key.name not in first and key.name not in meant]
    misread = not judged or any(entry.key not in keys or _swallowed(entry, keys) for entry in block.entries)
    if missing and not misread:  # what is misspelt or swallowed may be what lacks
        names = ", ".join(f"`{key.name}`" for key in missing)
        meanings = "; ".join(f"`{key.name}`: {key.meaning}" for key in missing)
        message = f"`{block.name}` lacks {names}"
        fix = advice(f"add {' '.join(f'`{key.name} {_example(key)};`' for key in missing)}")
        yield Diagnostic(Code.MISSING_KEY, "error", message, block.place("name"), note=meanings, fix=fix)


def _bare_phase(block: s.Block, entry: s.Entry, known: Known) -> Fix | None:
    """A rule set of a strategy without `phase`."""
    if block.kind != "strategy" or entry.key not in known["ruleset"]:
        return None
    return edit(f"write `phase {entry.key};`", Edit(before(entry.place("key")), "phase "))


def _swallowed(entry: s.Entry, keys: Collection[str]) -> int:
    """The number of the value that is a key at the beginning of a line, so that a `;` is missing; 0 where none is."""
    for number, value in enumerate(entry.values[1:], 1):
        lines = [entry.place(f"value:{place}").line for place in (number - 1, number)]
        if value in keys and lines[0] < lines[1]:
            return number
    return 0


def _example(key: Key) -> str:
    """What stands behind a key, in words."""
    return key.choices[0] if key.choices else "NUMBER" if key.kind == "number" else "WORD"


def _called(block: s.Block) -> str:
    """What kind of block it is, in words: keys depend on the subject, and for contractions on the template."""
    subject = f" for {block.subject}" if block.subject else ""
    template = next(map(str, values_of(block, "template")), "") if block.subject == "contraction" else ""
    return f"a `{block.kind}` block{subject}{f' with template {template}' if template else ''}"


def _check_subject(block: s.Block) -> Iterator[Diagnostic]:
    subjects = SUBJECTS.get(block.kind, ())
    if block.subject is None and subjects:
        message = f"a `{block.kind}` block says what it is for"
        meant = subjects_meant(block)
        first, *others = meant or subjects
        said = f"write `{block.kind} {block.name} for {first}`"
        example = advice(f"{said}, or for {', '.join(others)}{', which have these keys' * bool(meant)}")
        if len(meant) == 1:
            example = inserted(f"{said}, which has these keys", block.place("name"), f" for {meant[0]}")
        yield Diagnostic(Code.BAD_VALUE, "error", message, block.place("name"), fix=example)
    elif block.subject is not None and block.subject not in subjects:
        can_be = f"write one of {', '.join(subjects)}" if subjects else "leave `for` and the word behind it out"
        place, meant = block.place("subject"), subjects_meant(block)
        fix = spelling(block.subject, subjects, place) or advice(can_be)
        if len(meant) == 1 and not fix.edits:
            fix = replacement(f"write `{meant[0]}`", place, meant[0])
        message = f"a `{block.kind}` block is not for `{block.subject}`"
        note = f"it can be for {', '.join(subjects)}" if subjects else "it is for nothing: leave `for` out"
        yield Diagnostic(Code.BAD_VALUE, "error", message, block.place("subject"), note=note, fix=fix)


def _check_values(entry: s.Entry, key: Key, known: Known) -> Iterator[Diagnostic]:
    count = len(entry.values)
    for number, shown, fix in glued(entry):
        place = entry.place(f"value:{number}")
        yield Diagnostic(Code.BAD_VALUE, "error", f"`{shown}` is no number", place, fix=fix)
        return
    unit = unit_meant(key, entry)
    if unit is not None:
        number, message, fix = unit
        place, note = entry.place(f"value:{number}"), f"it means: {key.meaning}"
        yield Diagnostic(Code.BAD_VALUE, "error", message, place, note=note, fix=fix)
        return
    if count < key.least or (key.most is not None and count > key.most):
        wanted = (
            f"{key.least}"
            if key.least == key.most
            else f"{key.least} or more"
            if key.most is None
            else f"{key.least} to {key.most}"
        )
        message = f"`{key.name}` takes {wanted} value{'' if wanted == '1' else 's'}, not {count}"
        shown = " ".join([_example(key)] * max(1, key.least))
        fix = joined_meant(key, entry) or advice(f"write `{key.name} {shown};`")
        yield Diagnostic(Code.BAD_VALUE, "error", message, entry.span, note=f"it means: {key.meaning}", fix=fix)
        return
    if key.kind == "phase":
        yield from _check_phase(entry, known)
        return
    if key.kind == "clause" and entry.values[0] in key.choices:
        yield from _check_clause(entry)
        return
    for number, value in enumerate(entry.values[:1] if key.kind == "clause" else entry.values):
        place = entry.place(f"value:{number}")
        is_number = isinstance(value, int | float)
        wants_number = key.kind == "number" or (key.kind == "space" and number > 0)
        if is_number != wants_number:
            message = f"`{key.name}` takes {'numbers' if wants_number else 'words'}, not `{value}`"
            said = value_meant(key, value, entry, number) or advice(f"write `{key.name} {_example(key)};`")
            yield Diagnostic(Code.BAD_VALUE, "error", message, place, note=f"it means: {key.meaning}", fix=said)
        elif isinstance(value, int | float) and (wrong_number := out_of_range(key, entry, number, value)) is not None:
            yield wrong_number
        elif key.choices and not wants_number and value not in key.choices:
            near = value_meant(key, value, entry, number) or spelling(str(value), key.choices, place)
            clause = effects_shown(str(value)) if key.kind == "clause" else ""
            fix = near or advice(clause or f"write one of {', '.join(key.choices)}")
            message = f"`{key.name}` is never `{value}`"
            yield Diagnostic(
                Code.BAD_VALUE, "error", message, place, note=f"it is one of {', '.join(key.choices)}", fix=fix
            )
        elif key.expression and (wrong := no_expression(str(value), place)) is not None:
            message = f'"{value}" is no regular expression: {wrong[0]}'
            yield Diagnostic(Code.BAD_VALUE, "error", message, place, note=f"it means: {key.meaning}", fix=wrong[1])
        elif key.refers and str(value) not in known[key.refers]:
            names = known[key.refers]
            fix = (
                spelling(str(value), names, place)
                or name_meant(str(value), names, place)
                or names_of(key.refers, known, str(value))
            )
            message = f"there is no {_KINDS[key.refers]} `{value}`"
            yield Diagnostic(Code.UNKNOWN_REFERENCE, "error", message, place, fix=fix)


def _check_clause(entry: s.Entry) -> Iterator[Diagnostic]:
    try:
        workaround_of(entry.values)
    except ClauseError as error:
        place = entry.span if error.place is None else entry.place(f"value:{error.place}")
        yield Diagnostic(Code.BAD_VALUE, "error", str(error), place, fix=advice(error.fix))


def _check_phase(entry: s.Entry, known: Known) -> Iterator[Diagnostic]:
    unknown = [one for one in rulesets_of(entry.values) if one[1] not in known["ruleset"]]
    for number, name in unknown:
        place = entry.place(f"value:{number}")
        if name in ("then", "and", "before", "after"):
            message = "the sets of a phase run together: what runs later is a phase of its own"
            fix = replacement("begin the next phase: write `; phase`", place, "; phase")
            yield Diagnostic(Code.UNKNOWN_REFERENCE, "error", message, place, fix=fix)
            continue
        limit = limit_meant(entry.values, number, entry)
        near = spelling(name, LIMITS, place) if limit is not None else None
        fix = near or limit or spelling(name, known["ruleset"], place) or names_of("ruleset", known)
        message = f"`{name}` is no limit of a phase" if limit is not None else f"there is no rule set `{name}`"
        yield Diagnostic(Code.UNKNOWN_REFERENCE, "error", message, place, fix=fix)
    if unknown:
        return
    try:
        phase_of(entry.values)
    except PhaseError as error:
        fix = advice("a phase reads `phase SET SET rounds 4 enodes 50000 seconds 2;`; limits may be left out")
        yield Diagnostic(Code.BAD_VALUE, "error", str(error), entry.place(f"value:{error.place}"), fix=fix)


def check_level(level: s.Block) -> Iterator[Diagnostic]:
    """A level that says twice what runs."""
    sets = next((entry for entry in level.entries if entry.key == "rulesets"), None)
    strategy = next((entry for entry in level.entries if entry.key == "strategy"), None)
    if sets is not None and strategy is not None:
        yield Diagnostic(
            Code.STRATEGY_AND_RULESETS,
            "error",
            f"`{level.name}` names rule sets and a strategy, but one of them says what runs",
            sets.place("key"),
            secondary=(strategy.place("key"), "the strategy is here"),
            fix=replacement("leave `rulesets` out: the phases of the strategy name them", sets.span, ""),
        )


_KINDS = {
    "ruleset": "rule set",
    "operator": "operator",
    "table": "table",
    "fuse": "fuse block",
    "layout": "layout block",
    "matrix": "matrix block",
    "strategy": "strategy",
}


def names_of(kind: str, known: Known, word: str = "") -> Fix:
    """What may be named where nothing is like the word that is; names that have a part in common with it first."""
    near = alike(word, known[kind])
    if near:
        return advice(
            f"write {' or '.join(f'`{one}`' for one in near[:4])}; or define it, or import the file that does"
        )
    declared = any_of(known[kind]) or "none is defined"
    return advice(f"define it, import the file that does, or name one that there is: {declared}")
