"""Each operator at special values: what ONNX says, what ONNX Runtime computes, what we compute, and why they differ.

    python bench/special_values.py --write docs/numerics_by_operator.md
    python bench/special_values.py --only Div ArgMax          the rows of some operators

The nodes are ONNX's node tests, in each element type of the operator (special_examples.py); the reasons stand in
special_reasons.py.  A difference without a reason, and a reason without a difference, make the command fail.
"""

from __future__ import annotations

import argparse
import platform
import re
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

import onnx
import onnxruntime

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(Path(__file__).resolve().parent))

from markdown_tables import replace_table  # noqa: E402
from special_compare import difference, element, same  # noqa: E402
from special_differences import Difference, Who  # noqa: E402
from special_examples import OUT, Example, Kind, Planted, examples  # noqa: E402
from special_reasons import REASONS, reason_of  # noqa: E402
from special_runs import Answer, by_evaluator, by_onnxruntime, by_plan  # noqa: E402

AGREE, NO_RUNTIME, NO_EVALUATOR, ALONE, NONE = "=", "=O", "=R", "o", ""
WIDTH = 118
DIGITS = (4, 9, 17)
"""Of a number that is shown: as many as it takes to see the difference."""


@dataclass(frozen=True)
class Found:
    """A difference, and the reason's number."""

    reason: int
    shown: str


@dataclass(frozen=True)
class Cell:
    """What became of an operator in one element type at the values of one class."""

    marks: frozenset[str]
    found: tuple[Found, ...]

    def key(self) -> tuple[object, ...]:
        """What has to be equal in element types that share a row."""
        return (self.marks, tuple(one.reason for one in self.found))

    def text(self) -> str:
        """The cell of a table."""
        if self.found:
            return "<br>".join(f"{one.shown} [{one.reason}]" for one in self.found)
        order = (NO_RUNTIME, NO_EVALUATOR, ALONE, AGREE)
        return next((mark for mark in order if mark in self.marks), NONE)


class UnexplainedError(Exception):
    """Answers differ, and no reason says why; the message lists where."""


def rows_of(operator: str, cases: Mapping[str, Any]) -> list[str]:
    """The lines of the table for an operator.

    Raises:
        UnexplainedError: a difference has no reason.
    """
    listed = examples(operator, cases)
    models = [example.model() for example in listed]
    feeds = [[example.feeds(place, planted) for place, planted in example.runs()] for example in listed]
    rows: dict[tuple[object, ...], tuple[list[str], str, dict[Kind, Cell]]] = {}
    unexplained: list[str] = []
    for example, model, inputs, ours in zip(listed, models, feeds, by_plan(models, feeds), strict=True):
        cells = _cells(example, by_evaluator(model, inputs), by_onnxruntime(model, inputs), ours, unexplained)
        key = (example.variant, *((kind, cell.key()) for kind, cell in cells.items()))
        rows.setdefault(key, ([], example.variant, cells))[0].append(example.dtype)
    if unexplained:
        raise UnexplainedError("\n".join(unexplained))
    return [_line(operator, variant, dtypes, cells) for dtypes, variant, cells in rows.values()]


def _line(operator: str, variant: str, dtypes: Sequence[str], cells: Mapping[Kind, Cell]) -> str:
    name = f"`{operator}`" + (f" {variant.replace('_', ' ')}" if variant else "")
    texts = [cells[kind].text() if kind in cells else NONE for kind in Kind]
    return f"| {' | '.join([name, ', '.join(dtypes), *texts])} |"


def _cells(
    example: Example,
    said: Sequence[Answer],
    theirs: Sequence[Answer],
    ours: Sequence[Answer],
    unexplained: list[str],
) -> dict[Kind, Cell]:
    marks: dict[Kind, set[str]] = {}
    found: dict[Kind, dict[int, Found]] = {}
    for (_, planted), one, other, here in zip(example.runs(), said, theirs, ours, strict=True):
        kind = planted.kind
        who = _who(one, other, here, kind)
        if who is None:
            marks.setdefault(kind, set()).add(_mark(one, other))
            continue
        number = reason_of(Difference(example.operator, kind, example.dtype, who))
        shown = _shown(one, other, here, kind, number is not None and REASONS[number - 1].said)
        if number is None:
            unexplained.append(_unexplained(example, planted, who, shown))
            continue
        marks.setdefault(kind, set())
        found.setdefault(kind, {}).setdefault(number, Found(number, shown))
    return {kind: Cell(frozenset(m), tuple(found.get(kind, {}).values())) for kind, m in marks.items()}


def _unexplained(example: Example, planted: Planted, who: Who, shown: str) -> str:
    return (
        f"{example.operator} {example.variant} {example.dtype}, {planted.kind} {planted.values[:3]}"
        f"{' everywhere' if planted.everywhere else ''}: {shown} ({who})"
    )


def _mark(said: Answer, theirs: Answer) -> str:
    if said.arrays is None:
        return ALONE if theirs.arrays is None else NO_EVALUATOR
    return AGREE if theirs.arrays is not None else NO_RUNTIME


def _who(said: Answer, theirs: Answer, ours: Answer, kind: Kind) -> Who | None:
    """Whose answer is not the others'; None where all that there are agree."""
    has_said, has_theirs = said.arrays is not None, theirs.why != "none"
    if ours.arrays is None:
        return Who.REFUSED if has_said or has_theirs else None
    other_than_said = has_said and not same(ours, said, kind)
    other_than_theirs = has_theirs and not same(ours, theirs, kind)
    if other_than_said and other_than_theirs:
        return Who.HERE if same(said, theirs, kind) else Who.EACH
    if other_than_said:
        return Who.ONNX
    return Who.ONNXRUNTIME if other_than_theirs else None


def _shown(said: Answer, theirs: Answer, ours: Answer, kind: Kind, is_said: bool) -> str:
    """The first element that differs, by ONNX, ONNX Runtime and here."""
    place = (said.arrays is not None and difference(ours, said, kind)) or None
    place = place or (theirs.why != "none" and difference(ours, theirs, kind)) or (0, 0)
    for digits in DIGITS:
        texts = [element(answer, place, digits) for answer in (said, theirs, ours)]
        numbers = {text for text, one in zip(texts, (said, theirs, ours), strict=True) if one.arrays is not None}
        if len(numbers) > 1:
            break
    mark = "" if is_said or said.arrays is None else "?"
    return " / ".join(("-" if text == "none" else text) + end for text, end in zip(texts, (mark, "", ""), strict=True))


def listed_operators() -> list[str]:
    """The operators of ai.onnx that docs/operators.md lists and that take numbers."""
    page = (ROOT / "docs" / "operators.md").read_text("utf-8")
    table = page[page.index("| operator |") :].partition("\n\n")[0]
    names = re.findall(r"^\| ([A-Z]\w+) \|", table, re.MULTILINE)
    return [name for name in dict.fromkeys(names) if name not in OUT]


def node_cases() -> dict[str, Any]:
    """ONNX's node tests of one node, by name."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return of_one_node(load_model_tests(kind="node"))


def of_one_node(cases: Iterable[Any]) -> dict[str, Any]:
    """Those of the node tests that have one node, by name."""
    return {case.name: case for case in cases if len(case.model.graph.node) == 1}


def versions() -> str:
    """What the other answers are of; answers of other versions may be others."""
    return f"ONNX {onnx.__version__}, ONNX Runtime {onnxruntime.__version__}"


def tables(rows: Sequence[str]) -> dict[str, str]:
    """What stands between the marks of the page, by their names."""
    used = sorted({int(number) for row in rows for number in re.findall(r"\[(\d+)\]", row)})
    unused = sorted(set(range(1, len(REASONS) + 1)) - set(used))
    if unused:
        raise SystemExit("reasons that explain nothing:\n" + "\n".join(REASONS[n - 1].sentence for n in unused))
    head = ["operator", "element types", *Kind]
    left_out: dict[str, list[str]] = {}
    for name, why in OUT.items():
        left_out.setdefault(why, []).append(f"`{name}`")
    outs = [fill(f"- {why}: {', '.join(names)}", WIDTH, subsequent_indent="  ") for why, names in left_out.items()]
    return {
        "versions": f"{versions()}, {platform.machine()}.",
        "reasons": "\n".join(fill(f"{n}. {REASONS[n - 1].sentence}", WIDTH, subsequent_indent="   ") for n in used),
        "operators": "\n".join([f"| {' | '.join(head)} |", "|" + "---|" * len(head), *rows]),
        "left out": "\n".join(outs),
    }


def main() -> int:
    """Run, then print or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="the page")
    parser.add_argument("--only", nargs="+", default=[], help="operators whose rows are printed")
    arguments = parser.parse_args()
    cases, rows, unexplained = node_cases(), list[str](), list[str]()
    operators = arguments.only or listed_operators()
    for number, operator in enumerate(operators, 1):
        if sys.stderr.isatty():
            print(f"\r{number} of {len(operators)}: {operator:40}", end="", file=sys.stderr, flush=True)
        try:
            rows += rows_of(operator, cases)
        except UnexplainedError as error:
            unexplained.append(str(error))
    if unexplained:
        print("without a reason:", *unexplained, sep="\n", file=sys.stderr)
        return 1
    if arguments.write and not arguments.only:
        for name, text in tables(rows).items():
            replace_table(arguments.write, name, text)
    else:
        print("\n".join(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
