"""What is wrong with tables: lines and cells that are missing, twice there, or mean nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.fixes import Fix, advice, replacement, spelling
from smartmem_rules.language.schema import ACTIONS, RESULTS
from smartmem_rules.language.vocabulary import CLASSES, MAPPINGS


def check_table(table: s.Table) -> Iterator[Diagnostic]:
    """The problems of one table: it is complete, and every line and cell means something."""
    axis, words = _axis(table)
    for what, names in (("row", table.rows), ("column", table.columns)):
        missing = [word for word in sorted(words) if word not in names]
        repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        unknown = [name for name in dict.fromkeys(names) if name not in words]
        yield from _check_repeated_lines(table, what, repeated, missing)
        for name in unknown:
            message = f"no operator is `{name}`, so this {what} is never reached"
            near = spelling(name, words, table.place(f"{what}:{name}"))
            note = None if near else f"the {_AXES[axis]} are {', '.join(sorted(words))}"
            fix = near or advice(f"leave the {what} out, or name it by one of them")
            if near is None and len(unknown) == len(missing) == 1 and not repeated:
                place = table.place(f"{what}:{name}")
                fix = replacement(f"write `{missing[0]}`, the {what} that is missing", place, missing[0])
            yield Diagnostic(Code.UNKNOWN_LINE, "error", message, table.place(f"{what}:{name}"), note=note, fix=fix)
        # lines whose names are wrong may be those that are missing
        few = len(unknown) + len(repeated) < len(missing) < len(words)
        meant = [_meant_at(table, what, name, missing) for name in repeated]
        missing = [word for word in missing if word not in [one[1] for one in meant if one is not None]]
        if few:
            message = f"table `{table.name}` has no {what} for {', '.join(f'`{word}`' for word in missing)}"
            cells = len(table.columns if what == "row" else table.rows)
            fix = advice(f"add the {what}: its name, and {cells} cells such as `{next(iter(ACTIONS[axis]))}`")
            yield Diagnostic(Code.MISSING_LINE, "error", message, table.place("name"), fix=fix)
    for row in dict.fromkeys(table.rows):
        for column in dict.fromkeys(table.columns):
            if (row, column) not in table.cells:
                message = f"table `{table.name}` has no cell for row `{row}` and column `{column}`"
                secondary = (table.place(f"column:{column}"), "the column is here")
                place = table.place(f"row:{row}")
                fix = advice(
                    f"add the cell, such as `{next(iter(ACTIONS[axis]))}`; `-` is none"
                    if "-" in ACTIONS[axis]
                    else f"add the cell: one of {', '.join(ACTIONS[axis])}"
                )
                yield Diagnostic(Code.MISSING_CELL, "error", message, place, secondary=secondary, fix=fix)
    yield from _check_cells(table, axis, words)


_MEANT = {
    **dict.fromkeys(("merge", "join", "combine", "inline", "together", "yes"), "fuse"),
    **dict.fromkeys(("stay", "separate", "none", "no", "apart", "store", "leave"), "keep"),
}


def _action_meant(cell: Sequence[str], actions: Collection[str], place: s.Span) -> Fix:
    """The action that a word of another system means, or the forms of all."""
    meant = _MEANT.get(cell[0], "")
    if meant in actions:
        new = "/".join((meant, *cell[1:]))
        return replacement(f"write `{new}`", place, new)
    shown = ", ".join(f"`{'/'.join((action, *cell[1:]))}`" for action in actions)
    return advice(f"write one of the actions: {shown}")


_AXES = {"class": "classes", "mapping": "mapping types"}


def _axis(table: s.Table) -> tuple[str, frozenset[str]]:
    """Whether the lines are classes or mapping types: what most of them are."""
    lines = [*table.rows, *table.columns]
    by_class = sum(line in CLASSES or "." in line for line in lines)
    return ("class", CLASSES) if 2 * by_class >= len(lines) else ("mapping", MAPPINGS)


def _check_repeated_lines(
    table: s.Table, what: str, repeated: Sequence[str], missing: Sequence[str]
) -> Iterator[Diagnostic]:
    """Lines that stand twice; where others are missing, those are meant."""
    for name in repeated:
        message = f"table `{table.name}` has two {what}s `{name}`"
        place = table.places.get(f"second {what}:{name}", table.place("name"))
        secondary = (table.place(f"{what}:{name}"), "the first is here")
        fix = advice("leave one of them out, or give it the name that it is meant for")
        if missing:
            shown = " or ".join(f"`{one}`" for one in missing)
            message += f", and none {shown}"
            fix = advice(f"write {shown} for the one of them that is meant for it")
            meant = _meant_at(table, what, name, missing)
            if meant is not None:
                first, new = meant
                if first:
                    place, secondary = secondary[0], (place, "the second is here")
                fix = replacement(
                    f"write `{new}`, which the {'columns' if what == 'row' else 'rows'} have at this place", place, new
                )
        yield Diagnostic(Code.REPEATED_LINE, "error", message, place, secondary=secondary, fix=fix)


def _meant_at(table: s.Table, what: str, name: str, missing: Sequence[str]) -> tuple[bool, str] | None:
    """Whether the first of two lines is meant for another one, and which: the one that the other axis has there."""
    names, others = (table.rows, table.columns) if what == "row" else (table.columns, table.rows)
    at = [place for place, one in enumerate(names) if one == name]
    meant = [(place == at[0], others[place]) for place in at if place < len(others) and others[place] in missing]
    return meant[0] if len(meant) == 1 and len(at) == 2 else None


def _check_cells(table: s.Table, axis: str, words: frozenset[str]) -> Iterator[Diagnostic]:
    actions, results = ACTIONS[axis], {*words, *RESULTS[axis]}
    for (row, column), cell in table.cells.items():
        place = table.place(f"cell:{row}:{column}")
        if cell[0] not in actions:
            note = f"the actions are {', '.join(actions)}"
            near = spelling(cell[0], actions, place, "/".join(("{}", *cell[1:])))
            fix = near or _action_meant(cell, actions, place)
            message = f"there is no action `{cell[0]}`"
            yield Diagnostic(Code.UNKNOWN_ACTION, "error", message, place, note=note, fix=fix)
        elif len(cell) > 2 or (len(cell) == 2 and cell[1] not in results):
            message = f"`{'/'.join(cell[1:])}` is no result of two operators"
            near = spelling(cell[1], results, place, f"{cell[0]}/{{}}") if len(cell) == 2 else None
            fix = near or advice(f"write `{cell[0]}/RESULT` with one of these")
            note = f"behind `/` stands what they become together: {', '.join(sorted(results))}"
            yield Diagnostic(Code.UNKNOWN_ACTION, "error", message, place, note=note, fix=fix)
