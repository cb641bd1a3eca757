"""What numbers mean: the tables of docs/numerics.md, measured.

`python bench/numerics.py --write docs/numerics.md` writes anew what stands between its `<!-- table NAME -->` marks:
special values by ONNX Runtime (each case in a process of its own: some end it) and by the rules, and errors in ulps on
the device at hand.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from smartmem_rules.graph.importer import import_model
from smartmem_rules.rulebase.base import load_rules

Array = np.ndarray[Any, np.dtype[Any]]
NAN, INF = float("nan"), float("inf")
OPSET = 21


@dataclass(frozen=True, kw_only=True)
class Case:
    """One node whose results are shown.

    Attributes:
        topic: the table that it belongs to.
        operands: arrays of the node's inputs.
        outputs: how many it has.
        fixed: places of operands that the rules take as constants.
        alike: whether ONNX Runtime's results are taken over (where it has any).
    """

    topic: str
    operator: str
    operands: tuple[Array, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    fixed: tuple[int, ...] = ()
    alike: bool = True

    @property
    def label(self) -> str:
        given = [text(array) for array in self.operands]
        named = [f"{k}={v}" for k, v in self.attributes.items() if k != "to"]
        if "to" in self.attributes:
            named.append(helper.tensor_dtype_to_np_dtype(self.attributes["to"]).name)
        return f"{self.operator}({', '.join([*given, *named])})"


def array(values: Sequence[Any] | float, dtype: str = "float32") -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(values, dtype)


def text(values: Array) -> str:
    """An array as a table shows it: its elements, the dtype unless it is float32 or bool."""
    kind = "" if values.dtype.name in ("float32", "bool", "int64") else f" {values.dtype.name}"
    return " ".join(map(_number, values.reshape(-1).tolist())) + kind


def _number(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def _extremes() -> Iterable[Case]:
    topic = "extremes"
    for values in ([NAN, 1, 2], [1, NAN, 2], [1, 2, NAN]):
        x = array([values])
        axes = np.array([1])
        yield Case(topic=topic, operator="ReduceMax", operands=(x, axes), fixed=(1,), alike=False)
        yield Case(topic=topic, operator="ReduceMin", operands=(x, axes), fixed=(1,), alike=False)
        yield Case(topic=topic, operator="ArgMax", operands=(x,), attributes={"axis": 1}, alike=False)
        yield Case(topic=topic, operator="ArgMin", operands=(x,), attributes={"axis": 1}, alike=False)
        yield Case(topic=topic, operator="Hardmax", operands=(x,), alike=False)
        pool = {"kernel_shape": [2]}
        yield Case(topic=topic, operator="MaxPool", operands=(x[None],), attributes=pool, outputs=2, alike=False)
        yield Case(topic=topic, operator="TopK", operands=(x, np.array([3])), outputs=2, fixed=(1,), alike=False)
    low = array([[[-INF, -INF]]])
    window = {"kernel_shape": [2], "pads": [1, 1]}
    yield Case(topic=topic, operator="MaxPool", operands=(low,), attributes=window, outputs=2)
    ties = array([[3, 1, 3, 1]])
    for last in (0, 1):
        attributes = {"axis": 1, "select_last_index": last}
        yield Case(topic=topic, operator="ArgMax", operands=(ties,), attributes=attributes)
    yield Case(topic=topic, operator="TopK", operands=(ties, np.array([4])), fixed=(1,), outputs=2)
    overflowing = array([[1e30, 1e30, 0]])
    yield Case(topic=topic, operator="ReduceProd", operands=(overflowing, np.array([1])), fixed=(1,))


def _elementwise() -> Iterable[Case]:
    topic = "elementwise"
    x = array([NAN, INF, -INF, -0.0])
    yield Case(topic=topic, operator="Max", operands=(x, array([1, NAN, 0, 0])))
    yield Case(topic=topic, operator="Min", operands=(x, array([1, NAN, 0, 0])))
    for operator in ("Relu", "Sign", "Softsign", "HardSigmoid", "HardSwish", "Softplus", "Mish", "Gelu", "Elu"):
        yield Case(topic=topic, operator=operator, operands=(x,))
    for operator in ("ThresholdedRelu", "Shrink", "LeakyRelu", "Tanh", "Sigmoid", "Erf"):
        yield Case(topic=topic, operator=operator, operands=(x,))
    yield Case(topic=topic, operator="Softplus", operands=(array([-100, -20, -9, 100]),), alike=False)
    yield Case(topic=topic, operator="Elu", operands=(array([-1e-4, -1e-8, -20]),), alike=False)
    yield Case(topic=topic, operator="Round", operands=(array([0.5, 1.5, 2.5, -0.5, -1.5, 8388609]),))
    for low, high in ((-1, 1), (2, 1)):
        bounds = (array(low), array(high))
        yield Case(topic=topic, operator="Clip", operands=(array([NAN, INF, -INF, 0]), *bounds))
    yield Case(topic=topic, operator="Clip", operands=(array([0, 3]), array(NAN), array(1)), alike=False)
    yield Case(topic=topic, operator="Clip", operands=(array([INF, -INF]),), alike=False)
    base, exponent = [INF, -INF, NAN, 0, -0.0, -8, 1, -1], [0, 0.5, 0, -1, -1, 1 / 3, NAN, INF]
    yield Case(topic=topic, operator="Pow", operands=(array(base), array(exponent)))
    a, b = [5.25, -5.25, 5.25, -5.25, 5, INF, 1, NAN], [2, 2, -2, -2, INF, 2, 0, 1]
    yield Case(topic=topic, operator="Mod", operands=(array(a), array(b)), attributes={"fmod": 1})
    softmax = array([[INF, 1], [-INF, -INF], [NAN, 1], [-INF, 1]])
    yield Case(topic=topic, operator="Softmax", operands=(softmax,))
    yield Case(topic=topic, operator="LogSoftmax", operands=(softmax,))
    yield Case(topic=topic, operator="ReduceLogSumExp", operands=(softmax, np.array([1])), fixed=(1,))


def _casts() -> Iterable[Case]:
    topic = "casts"
    x = array([NAN, INF, -INF, 300.7, -300.7, -1.5, 3e9, 1e20])
    for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"):
        to = helper.np_dtype_to_tensor_dtype(np.dtype(name))
        alike = name not in ("int16", "uint16", "uint32")
        yield Case(topic=topic, operator="Cast", operands=(x,), attributes={"to": to}, alike=alike)
    whole = np.array([300, -300, 2**40 + 5])
    for name in ("int8", "uint32"):
        to = helper.np_dtype_to_tensor_dtype(np.dtype(name))
        yield Case(topic=topic, operator="Cast", operands=(whole,), attributes={"to": to})
    near = array([65519, 65520, 2049, 2051, 2e-8, 3e-8, NAN])
    yield Case(topic=topic, operator="Cast", operands=(near,), attributes={"to": onnx.TensorProto.FLOAT16})
    yield Case(
        topic=topic,
        operator="Cast",
        operands=(np.array([2**24 + 1, 2**63 - 1]),),
        attributes={"to": onnx.TensorProto.FLOAT},
    )


def _integers() -> Iterable[Case]:
    topic = "integers"
    low = -(2**31)
    a, b = array([7, -7, 0, 7], "int32"), array([2, 2, 5, -2], "int32")
    yield Case(topic=topic, operator="Div", operands=(a, b))
    yield Case(topic=topic, operator="Mod", operands=(a, b))
    yield Case(topic=topic, operator="Mod", operands=(a, b), attributes={"fmod": 1})
    zero, minus = array([7, 0], "int32"), array([low], "int32")
    yield Case(topic=topic, operator="Div", operands=(zero, array([0, 0], "int32")), alike=False)
    yield Case(topic=topic, operator="Mod", operands=(zero, array([0, 0], "int32")), alike=False)
    yield Case(topic=topic, operator="Div", operands=(minus, array([-1], "int32")), alike=False)
    yield Case(topic=topic, operator="Mod", operands=(minus, array([-1], "int32")), alike=False)
    top = array([2**31 - 1], "int32")
    for operator in ("Add", "Mul"):
        yield Case(topic=topic, operator=operator, operands=(top, top))
    for operator in ("Neg", "Abs"):
        yield Case(topic=topic, operator=operator, operands=(minus,))
    twice, axes = array([2**31 - 1, 2**31 - 1], "int32"), np.array([0])
    yield Case(topic=topic, operator="ReduceSum", operands=(twice, axes), fixed=(1,), alike=False)
    mean = array([[7, -8], [-7, 0], [2**31 - 1, 1]], "int32")
    yield Case(topic=topic, operator="ReduceMean", operands=(mean, np.array([1])), fixed=(1,))
    power = array([2, 3, 0, 1, -1], "int32"), array([3, 40, -1, -2, -3], "int32")
    yield Case(topic=topic, operator="Pow", operands=power, alike=False)
    shifts = array([200, 200, 200], "uint8"), array([1, 8, 9], "uint8")
    for direction in ("LEFT", "RIGHT"):
        yield Case(topic=topic, operator="BitShift", operands=shifts, attributes={"direction": direction})


def _products() -> Iterable[Case]:
    topic = "products"
    a, b, c = array([[1, 2]]), array([[3], [4]]), array([NAN])
    for beta in (1.0, 0.0):
        yield Case(topic=topic, operator="Gemm", operands=(a, b, c), attributes={"beta": beta})
    x, weights = array([[[1, 2]]]), (array([[[NAN, 3]]]), array([[[INF, 3, 4]]]))
    for w in weights:
        yield Case(topic=topic, operator="ConvTranspose", operands=(x, w), attributes={"strides": [2]})
    yield Case(topic=topic, operator="ConvTranspose", operands=(x, weights[1]))
    yield Case(topic=topic, operator="Conv", operands=(x, array([[[NAN, 3, 4]]])), attributes={"pads": [1, 1]})
    channels = array([[[[NAN]], [[1]], [[1]], [[1]]]])
    yield Case(topic=topic, operator="LRN", operands=(channels,), attributes={"size": 3}, alike=False)
    row = array([[1, 3e38, -1]])
    ones = array([1, 1, 1])
    yield Case(topic=topic, operator="LayerNormalization", operands=(row, ones, ones), alike=False)


def _empty() -> Iterable[Case]:
    for operator in ("ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceLogSumExp"):
        x, axes = np.zeros((0, 1), np.float32), np.array([0])
        yield Case(topic="empty", operator=operator, operands=(x, axes), fixed=(1,))


CASES = [*_extremes(), *_elementwise(), *_casts(), *_integers(), *_products(), *_empty()]


def model_of(cases: Sequence[Case], constant: bool) -> onnx.ModelProto:
    """One model of all cases; outputs are `CASE_OUTPUT`, inputs `CASE_PLACE`, or constants where that is asked for."""
    nodes, inputs, constants, outputs = [], [], [], []
    for number, case in enumerate(cases):
        names = [f"i{number}_{place}" for place in range(len(case.operands))]
        made = [f"o{number}_{place}" for place in range(case.outputs)]
        nodes.append(helper.make_node(case.operator, names, made, **case.attributes))
        outputs += [helper.make_empty_tensor_value_info(name) for name in made]
        for place, (name, operand) in enumerate(zip(names, case.operands, strict=True)):
            if constant or place in case.fixed:
                constants.append(numpy_helper.from_array(operand, name))
            else:
                dtype = helper.np_dtype_to_tensor_dtype(operand.dtype)
                inputs.append(helper.make_tensor_value_info(name, dtype, operand.shape))
    graph = helper.make_graph(nodes, "numbers", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


def feeds_of(cases: Sequence[Case]) -> dict[str, Array]:
    return {
        f"i{number}_{place}": operand
        for number, case in enumerate(cases)
        for place, operand in enumerate(case.operands)
        if place not in case.fixed
    }


def folded(cases: Sequence[Case]) -> list[list[Array]]:
    """The results by the definitions of the rule base."""
    constants = import_model(model_of(cases, True), load_rules()).constants
    return [[constants[f"o{number}_{place}"] for place in range(case.outputs)] for number, case in enumerate(cases)]


def by_onnxruntime(case: Case) -> list[Array] | str:
    """ONNX Runtime's results on its CPU provider, or what it says; in a process of its own, which some cases end."""
    import onnxruntime

    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        try:
            session = onnxruntime.InferenceSession(
                model_of([case], False).SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            answer = " ; ".join(text(np.asarray(value)) for value in session.run(None, feeds_of([case])))
        except Exception as error:
            answer = "refused" if "NOT_IMPLEMENTED" in str(error) or "INVALID" in str(error) else "error"
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    return f"ends the process (signal {os.WTERMSIG(status)})" if os.WIFSIGNALED(status) else answer


def table(topic: str) -> str:
    """Markdown: the case, ONNX Runtime's results where they differ, and those of the rules."""
    chosen = [case for case in CASES if case.topic == topic]
    lines = ["| node | ONNX Runtime | here |", "|---|---|---|"]
    for case, results in zip(chosen, folded(chosen), strict=True):
        ours = " ; ".join(map(text, results))
        theirs = by_onnxruntime(case)
        lines.append(f"| `{case.label}` | {'the same' if theirs == ours else theirs} | {ours} |")
    return "\n".join(lines)


def ulps_table() -> str:
    """Markdown: the largest error found of each elementary function, in single and double precision."""
    from tests.numerics.device_functions import is_cpu, run_primitive
    from tests.numerics.test_elementary import FUNCTIONS, Function, drawn, unit

    single, double = drawn(count=1 << 20), drawn("float64", 1 << 16)
    lines = ["| function | float32, found | bound | float64, found | bound |", "|---|---:|---:|---:|---:|"]
    for name, function in FUNCTIONS.items():
        made = run_primitive(name, [single], ["float32"], "float32", 8, is_cpu())
        found = unit("float32", function, single, made)[0]
        wide = "-"
        if name not in ("expm1", "log1p", "erf"):
            exact = Function(function.exact, 0.0, 0.0)
            made = run_primitive(name, [double], ["float64"], "float64", cpu=is_cpu())
            wide = f"{unit('float64', exact, double, made)[0]:.2f}"
        bounds = (function.bound, function.double) if is_cpu() else (function.elsewhere, function.elsewhere)
        bound = f"{bounds[0]:g}" + (f" above {function.low:g}" if np.isfinite(function.low) else "")
        lines.append(f"| {name} | {found:.2f} | {bound} | {wide} | {bounds[1]:g} |")
    return "\n".join(lines)


ULPS = ("ulps", "ulps_elsewhere")
"""Errors on a CPU, and on a device that is none; the one at hand gives one of them."""
TABLES = (*dict.fromkeys(case.topic for case in CASES), *ULPS)


def tables_here() -> list[str]:
    """The tables that the device at hand can give."""
    from tests.numerics.device_functions import is_cpu

    return [name for name in TABLES if name != ULPS[is_cpu()]]


def written(page: str, only: Sequence[str] = ()) -> str:
    """The page with its tables measured anew."""
    for name in only or tables_here():
        made = ulps_table() if name in ULPS else table(name)
        mark = re.compile(rf"(<!-- table {name} -->\n).*?(<!-- end -->)", re.S)
        page, count = mark.subn(lambda found, made=made: f"{found[1]}{made}\n{found[2]}", page)  # type: ignore[misc]
        if not count:
            raise SystemExit(f"the page has no table {name!r}")
    return page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", type=Path, help="the page whose tables are written anew")
    parser.add_argument("--only", nargs="*", choices=TABLES, default=[], help="tables, by default all of this device")
    arguments = parser.parse_args()
    if arguments.write is None:
        for name in arguments.only or tables_here():
            sys.stdout.write(f"## {name}\n{ulps_table() if name in ULPS else table(name)}\n")
        return
    arguments.write.write_text(written(arguments.write.read_text("utf-8"), arguments.only), "utf-8")


if __name__ == "__main__":
    main()
