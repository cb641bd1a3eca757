"""Whether a node with bodies and its bodies agree: as many inputs, results and entries of attributes as each other."""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from smartmem_rules.tensor.builtins import Unsupported

_SCAN_LISTS = {"scan_input_axes": False, "scan_input_directions": False, "directions": False} | {
    "scan_output_axes": True,
    "scan_output_directions": True,
}
"""The attributes with an entry for each scanned input, or (True) for each scanned output."""


def body_inputs(body: onnx.GraphProto) -> list[str]:
    """The inputs that a body is given; before IR version 4 its own initializers stand among them."""
    own = {tensor.name for tensor in body.initializer}
    return [value.name for value in body.input if value.name not in own]


def branches_of(node: onnx.NodeProto, attributes: Mapping[str, object]) -> tuple[onnx.GraphProto, onnx.GraphProto]:
    """The two bodies of an If: where the condition is true, and where not.

    Raises:
        Unsupported: one of them is missing, or gives more or fewer results than the node has outputs.
    """
    then, otherwise = (_body(attributes, name) for name in ("then_branch", "else_branch"))
    for name, branch in (("then_branch", then), ("else_branch", otherwise)):
        _same(len(branch.output), f"results of its {name}", len(node.output), "outputs")
    return then, otherwise


def loop_body(node: onnx.NodeProto, attributes: Mapping[str, object]) -> onnx.GraphProto:
    """The body of a Loop, which is given the step, the condition and the states.

    Raises:
        Unsupported: it takes or gives more or fewer tensors than the node has.
    """
    body = _body(attributes, "body")
    states = len(node.input[2:])
    _same(len(body_inputs(body)), "inputs of its body", 2 + states, "of the step, the condition and the states")
    _same(len(body.output), "results of its body", 1 + len(node.output), "of the condition and the outputs")
    _at_least(states, node)
    return body


def scan_body(node: onnx.NodeProto, attributes: Mapping[str, object], scanned: int) -> onnx.GraphProto:
    """The body of a Scan, which is given the states and one part of each scanned input.

    Raises:
        Unsupported: it takes or gives more or fewer tensors than the node has, or an attribute with one entry for each
            scanned input or output has more or fewer.
    """
    body = _body(attributes, "body")
    given = len(body_inputs(body))
    if not 0 < scanned <= given:
        raise Unsupported(f"it scans {scanned} inputs (num_scan_inputs), and its body takes {given}")
    # the scan of opset 8 has the lengths of the sequences before its other inputs
    if len(node.input) not in (given, given + 1):
        _same(given, "inputs of its body", len(node.input), "inputs")
    _same(len(body.output), "results of its body", len(node.output), "outputs")
    _at_least(given - scanned, node)
    outputs = len(node.output) - (given - scanned)
    for name, of_outputs in _SCAN_LISTS.items():
        entries = attributes.get(name)
        if isinstance(entries, list):
            count, whole = (outputs, "outputs") if of_outputs else (scanned, "inputs")
            _same(len(entries), f"entries of {name}", count, f"scanned {whole}")
    return body


def scanned_inputs(attributes: Mapping[str, object]) -> int:
    """How many of a Scan's inputs are scanned: the last ones.

    Raises:
        Unsupported: it does not say.
    """
    count = attributes.get("num_scan_inputs")
    if not isinstance(count, int):
        raise Unsupported("a scan that does not say how many of its inputs it scans (num_scan_inputs)")
    return count


def entries_of(attributes: Mapping[str, object], name: str, count: int) -> list[int]:
    """The entries of a list attribute: as many zeros where it is absent."""
    given = attributes.get(name)
    return [int(v) for v in given] if isinstance(given, list) else [0] * count


def _body(attributes: Mapping[str, object], name: str) -> onnx.GraphProto:
    body = attributes.get(name)
    if not isinstance(body, onnx.GraphProto):
        raise Unsupported(f"it has no {name}")
    return body


def _same(count: int, what: str, wanted: int, whole: str) -> None:
    if count != wanted:
        raise Unsupported(f"there are {count} {what}, but {wanted} {whole}")


def _at_least(states: int, node: onnx.NodeProto) -> None:
    if len(node.output) < states:
        raise Unsupported(f"it has {states} states and only {len(node.output)} outputs")
