"""docs/operators.md: every operator with its derived SmartMem class and DNNFusion mapping, beside what the papers say.

`python bench/operators.py` prints the page, `--write docs/operators.md` writes it.  `--suite FILE` (what
`bench/backend_suite.py --json FILE` wrote) adds how many of ONNX's node tests pass; without it these figures stay as
docs/operators.md has them, and the rest is derived anew.  `--readme README.md` puts the
totals and, with `--models FILE` (what `bench/models.py --json FILE` wrote), the models between the README's marks.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap

import numpy as np
import onnx
from onnx import helper, numpy_helper

from smartmem_rules.analysis.tries import tried
from smartmem_rules.graph.failures import UnknownValuesError
from smartmem_rules.graph.importer import import_model
from smartmem_rules.graph.loading import DEFAULT_DOMAIN
from smartmem_rules.graph.model import GraphError
from smartmem_rules.language.syntax import Operator
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.runtime.reference import TOLERANCES
from smartmem_rules.tensor.binding import operand_name
from smartmem_rules.tensor.classify import COMPLEXITY, Classes, classify

sys.path.insert(0, str(Path(__file__).resolve().parent))

import backend_suite  # found beside this file however it is started
from markdown_tables import replace_table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "operators.md"
PROBES, ATTEMPTS = 24, 2400
WIDTH = 118
"""Columns of a paragraph."""
HEAD = "| operator | opsets | overloads | SmartMem class | DNNFusion mapping | node tests passed |"
COLUMNS = 6
LAYOUTS = ("ILI.Fixed", "ILD.Fixed", "ILI.Variable", "ILD.Variable")

SMARTMEM = {
    "ILD.Variable": "Conv MatMul LayerNormalization Softmax",
    "ILD.Fixed": "Reshape Transpose DepthToSpace SpaceToDepth",
    "ILI.Variable": "Abs Exp Log Neg Relu Sqrt Tanh Add",
    "ILI.Fixed": "Gather Slice",
}
"""The samples of SmartMem's table 3."""
DNNFUSION = {
    "one_to_one": "Add Sub Mul Div BatchNormalization Cast Clip Concat Erf PRelu Slice Split Where Relu Sigmoid Tanh",
    "one_to_many": "Expand Gather Resize Upsample",
    "many_to_many": "AveragePool Conv ConvTranspose CumSum Einsum Gemm InstanceNormalization MaxPool ReduceMax "
    "ReduceMean ReduceMin ReduceProd ReduceSum Softmax",
    "reorganize": "Flatten Reshape Squeeze Unsqueeze",
    "shuffle": "DepthToSpace SpaceToDepth Transpose",
}
"""DNNFusion's table 2."""
WHY = {
    "Transpose": "a permutation may keep the order of the elements",
    "Resize": "interpolation sums elements",
    "Einsum": "an equation may have no sum",
    "MaxPool": "a window of one element",
    "ReduceSum": "no axes may mean that nothing is reduced",
}
"""Why a derived class is not (only) the one that a paper names."""


@dataclass(frozen=True)
class Row:
    """One ONNX operator."""

    domain: str
    name: str
    opsets: str
    overloads: int
    layouts: tuple[str, ...]
    mappings: tuple[str, ...]


def main() -> int:
    """Derive and print or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--suite", type=Path)
    parser.add_argument("--models", type=Path)
    parser.add_argument("--readme", type=Path)
    arguments = parser.parse_args()
    tests = json.loads(arguments.suite.read_text()) if arguments.suite else []
    listed = rows(load_rules())
    if arguments.readme:
        measured = json.loads(arguments.models.read_text()) if arguments.models else {}
        replace_table(arguments.readme, "operators", summary(listed, tests, measured))
    text = page(listed, tests) if tests else with_figures_of(PAGE.read_text("utf-8"), page(listed, tests))
    if arguments.write:
        arguments.write.write_text(text)
    else:
        print(text, end="")
    return 0


def rows(base: RuleBase) -> list[Row]:
    """All operators of the rule base, by domain and name."""
    found: dict[tuple[str, str], list[Operator]] = {}
    for overloads in base.operators.values():
        for operator in overloads:
            if not operator.internal:
                binding = operator.onnx
                key = (binding.domain, binding.name) if binding else (DEFAULT_DOMAIN, operator.name)
                found.setdefault(key, []).append(operator)
    cases = {(DEFAULT_DOMAIN, name): classes for name, classes in of_cases(base).items()}
    cases |= {(domain, name): {classes_of(base, model)} for domain, name, model in examples()}
    return [_row(base, *key, found[key], cases.get(key, set())) for key in sorted(found)]


def examples() -> Iterator[tuple[str, str, onnx.ModelProto]]:
    """A model of each operator whose requirements no operands meet that are drawn at random."""
    packed = {"a": ((2, 32), np.float32), "b": ((3, 2, 8), np.uint8), "s": ((6,), np.float32)}
    yield of_node("MatMulNBits", packed, ["a", "b", "s"], accuracy_level=0, bits=4, block_size=16, K=32, N=3)
    hidden = {"x": ((5, 2, 3), np.float32), "w": ((1, 3, 16), np.uint8), "r": ((1, 4, 16), np.uint8)}
    steps = {"ws": ((1,), np.float32), "wz": ((1,), np.uint8), "rs": ((1,), np.float32), "rz": ((1,), np.uint8)}
    given = ["x", "w", "r", "", "", "", "", "", "ws", "wz", "rs", "rz"]
    yield of_node("DynamicQuantizeLSTM", {**hidden, **steps}, given, hidden_size=4)
    queries, keys = ((2, 3, 16), np.float32), ((2, 3, 8), np.float32)
    alike = dict.fromkeys(["q", "k", "v"], queries)
    yield of_node("MultiHeadAttention", alike, [*alike], num_heads=2)
    grouped = {"q": queries, "k": keys, "v": keys, "counts": ((2,), np.int32)}
    given = ["q", "k", "v", "", "", "counts", "total"]
    yield of_node("GroupQueryAttention", grouped, given, {"total": 3}, num_heads=4, kv_num_heads=2)


def of_node(
    operator: str,
    inputs: Mapping[str, tuple[tuple[int, ...], type]],
    operands: Sequence[str],
    numbers: Mapping[str, int] | None = None,
    **attributes: int,
) -> tuple[str, str, onnx.ModelProto]:
    """A model of one operator of com.microsoft, with the operator's domain and name; numbers are constants of it."""
    types = {name: helper.np_dtype_to_tensor_dtype(np.dtype(dtype)) for name, (_, dtype) in inputs.items()}
    values = [helper.make_tensor_value_info(name, types[name], shape) for name, (shape, _) in inputs.items()]
    domain = "com.microsoft"
    node = helper.make_node(operator, operands, ["y"], domain=domain)
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    known = [numpy_helper.from_array(np.array(value, np.int32), name) for name, value in (numbers or {}).items()]
    graph = helper.make_graph([node], "one", values, [helper.make_empty_tensor_value_info("y")], known)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(domain, 1)]
    return domain, operator, helper.make_model(graph, opset_imports=opsets, ir_version=10)


def classes_of(base: RuleBase, model: onnx.ModelProto) -> Classes:
    """The classes of a model's only operator."""
    graph = import_model(model, base, fold_outputs=False)
    (node,) = graph.nodes
    return classify(node.equations, {o: graph.types[o] for o in node.operands if o is not None})


def _row(base: RuleBase, domain: str, name: str, overloads: Sequence[Operator], classes: set[Classes]) -> Row:
    if not classes:
        classes = {one for operator in overloads for one in derived(base, operator)}
    layouts = sorted({c.layout for c in classes}, key=LAYOUTS.index)
    mappings = sorted({c.mapping for c in classes}, key=COMPLEXITY.index)
    return Row(domain, name, _opsets(overloads), len(overloads), tuple(layouts), tuple(mappings))


def derived(base: RuleBase, operator: Operator) -> list[Classes]:
    """The classes of one overload at operands that are drawn at random."""
    found = []
    for probe in tried(base, operator, PROBES, ATTEMPTS).probes:
        types = {operand_name(place): t for place, t in enumerate(probe.operands) if t is not None}
        if any(extent < 2 for t in types.values() for extent in t.shape):
            continue  # an axis of one element hides what the operator does with it
        found.append(classify(probe.instance.equations, types))
    return found


def of_cases(base: RuleBase) -> dict[str, set[Classes]]:
    """The classes at the operands of ONNX's node tests, by operator."""
    found: dict[str, set[Classes]] = {}
    for case in backend_suite.counted_cases().values():
        operators = [node.op_type for node in case.model.graph.node]
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        try:
            graph = import_model(_with_values(model, case, base), base, fold_outputs=False)
        except GraphError:
            continue
        for node in graph.nodes if len(operators) == 1 else ():
            types = {o: graph.types[o] for o in node.operands if o is not None}
            extents = [extent for t in types.values() for extent in t.shape]
            is_empty = any(0 in graph.types[output].shape for output in node.outputs)  # which shows nothing
            if not is_empty and (not types or math.prod(extents) > 1):
                found.setdefault(operators[0], set()).add(classify(node.equations, types))
    return found


def _with_values(model: onnx.ModelProto, case: object, base: RuleBase) -> onnx.ModelProto:
    """The model, its inputs that have to be known as constants."""
    names = [value.name for value in model.graph.input]
    values = dict(zip(names, case.data_sets[0][0], strict=False))  # type: ignore[attr-defined]
    while True:
        try:
            import_model(model, base, fold_outputs=False)
        except UnknownValuesError as unknown:
            known = [name for name in names if name in unknown.tensors]
            if not known:
                return model
            names = [name for name in names if name not in known]
            rest = [value for value in model.graph.input if value.name not in known]
            del model.graph.input[:]
            model.graph.input.extend(rest)
            arrays = [numpy_helper.from_array(backend_suite.as_array(values[name]), name) for name in known]
            model.graph.initializer.extend(arrays)
            continue
        return model


def _opsets(overloads: Sequence[Operator]) -> str:
    ranges = sorted(
        {(o.onnx.since, o.onnx.until) for o in overloads if o.onnx is not None}, key=lambda r: (r[0], r[1] or 0)
    )
    if not ranges or any(o.onnx is None for o in overloads):
        return "all"
    return ", ".join(f"{since}-" if until is None else f"{since}-{until}" for since, until in ranges)


def page(listed: Sequence[Row], tests: Sequence[dict[str, object]]) -> str:
    """The page in markdown."""
    own = [row for row in listed if row.domain == DEFAULT_DOMAIN]
    passed, all_tests = counts(tests)
    total = Counter(str(test["verdict"]) for test in tests)
    lines = [
        "# Operators",
        "",
        "<!-- written by bench/operators.py -->",
        "",
        *wrap(
            f"{len(own)} operators of ai.onnx and {len(listed) - len(own)} of other domains are defined in "
            "`rules/operators`, besides the control flow that is unrolled at import. Their classes are derived from "
            "the definitions, at the operands of ONNX's node tests (at random ones where it has none): SmartMem's "
            "(does the speed depend on the input's layout, may the output's be chosen) and DNNFusion's mapping types. "
            "Where an operator's class depends on its operands or attributes, all that occur are listed, the simplest "
            "first; `?` is an operator whose requirements no drawn operands meet.",
            WIDTH,
        ),
        "",
    ]
    if tests:
        share = 100 * total["passed"] / len(tests)
        lines += [
            *wrap(
                f"Of ONNX's {len(tests)} node tests over operators whose outputs are not strings, sequences, optional "
                f"values or random, {total['passed']} pass ({share:.1f} %), {total['unsupported']} are refused with a "
                f"reason, {total['wrong']} are wrong, {total['failed']} fail (`python bench/backend_suite.py`).",
                WIDTH,
            ),
            "",
        ]
    lines += [HEAD]
    lines += ["|---|---|---:|---|---|---:|"]
    for row in listed:
        name = row.name if row.domain == DEFAULT_DOMAIN else f"{row.domain}::{row.name}"
        suite = f"{passed[row.name]} / {all_tests[row.name]}" if all_tests[row.name] and row in own else ""
        layouts, mappings = " / ".join(row.layouts) or "?", " / ".join(row.mappings) or "?"
        lines.append(f"| {name} | {row.opsets} | {row.overloads} | {layouts} | {mappings} | {suite} |")
    lines += ["", "## Where the papers name a class", "", *differences(own)]
    return "\n".join(lines) + "\n"


def with_figures_of(kept: str, text: str) -> str:
    """The page's text, with the figures of ONNX's node tests that another text of it has."""
    figures = {row[0]: row[-1] for row in _table(kept)}
    lines = text.split("\n")
    for number, line in enumerate(lines):
        row = _cells(line)
        if len(row) == COLUMNS and row[0] in figures and row[-1] == "":
            lines[number] = f"| {' | '.join(row[:-1])} | {figures[row[0]]} |"
    totals = next((part for part in kept.split("\n\n") if part.startswith("Of ONNX's")), "")
    place = lines.index(HEAD)
    return "\n".join([*lines[:place], *([totals, ""] if totals else []), *lines[place:]])


def _table(text: str) -> list[list[str]]:
    return [row for row in map(_cells, text.split("\n")) if len(row) == COLUMNS]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("| ") else []


def summary(
    listed: Sequence[Row], tests: Sequence[dict[str, object]], measured: dict[str, dict[str, float | bool | str]]
) -> str:
    """The README's table: how many operators and node tests, and how many of the paper's models agree."""
    own = sum(row.domain == DEFAULT_DOMAIN for row in listed)
    fused = sum(row.domain == "com.microsoft" for row in listed)
    total = Counter(str(test["verdict"]) for test in tests)
    share = 100 * total["passed"] / max(1, len(tests))
    lines = [
        "| what | |",
        "|---|---|",
        f"| operators of ai.onnx, com.microsoft, other domains | {own}, {fused}, {len(listed) - own - fused} |",
        f"| ONNX's node tests, passed | {total['passed']} of {len(tests)} ({share:.1f} %) |",
        "| refused with a reason / wrong / failed otherwise | "
        f"{total['unsupported']} / {total['wrong']} / {total['failed']} |",
    ]
    for dtype, limit in TOLERANCES.items():
        of = [row for name, row in measured.items() if name.endswith(f" {dtype}")]
        if of:
            good = [row for row in of if row["passed"]]
            worst = max((float(row["relative_error"]) for row in good), default=0.0)
            lines.append(
                f"| models of the paper that agree with ONNX Runtime, {dtype} (within {limit:g}) | "
                f"{len(good)} of {len(of)}, largest error {worst:.1e} |"
            )
    return "\n".join(lines)


def counts(tests: Sequence[dict[str, object]]) -> tuple[Counter[str], Counter[str]]:
    """Passed and all node tests by operator; cases of a function body count for none."""
    passed: Counter[str] = Counter()
    everything: Counter[str] = Counter()
    for test in tests:
        operators = test["operators"]
        assert isinstance(operators, list)
        if len(operators) == 1 and "expanded" not in str(test["name"]):
            everything[operators[0]] += 1
            passed[operators[0]] += test["verdict"] == "passed"
    return passed, everything


def differences(listed: Sequence[Row]) -> list[str]:
    """A line for every operator that a paper names: the same, more (it depends), or another class and why."""
    by_name = {row.name: row for row in listed}
    lines = ["| operator | paper | its class | ours | |", "|---|---|---|---|---|"]
    for paper, table, of in (("SmartMem", SMARTMEM, "layouts"), ("DNNFusion", DNNFUSION, "mappings")):
        for theirs, names in table.items():
            for name in names.split():
                ours: tuple[str, ...] = getattr(by_name[name], of)
                if ours == (theirs,):
                    verdict = "the same"
                elif theirs in ours:
                    verdict = WHY.get(
                        name, BROADCAST if ours[-1] == "one_to_many" else "depends on attributes and shapes"
                    )
                else:
                    verdict = WHY.get(name, OTHER.get((name, theirs), "differs"))
                lines.append(f"| {name} | {paper} | {theirs} | {' / '.join(ours)} | {verdict} |")
    return lines


BROADCAST = "one-to-many where an operand broadcasts"
OTHER = {
    (
        "BatchNormalization",
        "one_to_one",
    ): "the paper counts the data alone",
}
"""Why a class is another one than a paper's."""


if __name__ == "__main__":
    sys.exit(main())
