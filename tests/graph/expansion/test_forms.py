"""Choices, loops and scans whose parts do not fit together: each is imported or refused, never a traceback."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import onnx
import pytest
from onnx import helper

from smartmem_rules.graph.importer import import_model
from smartmem_rules.graph.model import GraphError
from smartmem_rules.rulebase.base import RuleBase, load_rules
from tests.graph.expansion.test_control import (
    BATCHED_SCAN,
    CHOICE,
    HEAD,
    LOOP,
    NEVER,
    RUN_TIME_CHOICE,
    SCAN,
    WHILE,
)

FLOWS = {
    "known choice": HEAD + CHOICE.replace("CONDITION", "1"),
    "choice": HEAD + RUN_TIME_CHOICE,
    "loop": HEAD + LOOP,
    "loop of data": HEAD + WHILE.replace("LIMIT", "3"),
    "no steps": HEAD + NEVER,
    "scan": HEAD + SCAN,
    "scan of opset 8": BATCHED_SCAN,
}
LISTS = ("scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions", "directions")
VALUES: tuple[list[int], ...] = ([], [0], [-1], [1, 1], [0, 0, 0], [7], [-9], [2**40])
COUNTS = (-(2**40), -5, -1, 0, 2, 5, 2**40)
OUTPUTS = 1
"""Of the lists, that of the node's outputs."""
Damage = Callable[[onnx.NodeProto], None]


def lists_of(node: onnx.NodeProto) -> Iterator[object]:
    """What has so many entries as the node or its bodies take or give."""
    yield from (node.input, node.output)
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield from (attribute.g.input, attribute.g.output, attribute.g.node)


def shorter(which: int) -> Damage:
    def damage(node: onnx.NodeProto) -> None:
        entries = list(lists_of(node))[which]
        del entries[-1:]  # type: ignore[attr-defined]

    return damage


def longer(which: int) -> Damage:
    def damage(node: onnx.NodeProto) -> None:
        entries = list(lists_of(node))[which]
        # two tensors of one name are refused before
        entries.extend(["another"] if which == OUTPUTS else entries[-1:])  # type: ignore[attr-defined,index]

    return damage


def with_attribute(name: str, value: int | list[int]) -> Damage:
    kind = onnx.AttributeProto.INT if isinstance(value, int) else onnx.AttributeProto.INTS

    def damage(node: onnx.NodeProto) -> None:
        for attribute in [one for one in node.attribute if one.name == name]:
            node.attribute.remove(attribute)
        node.attribute.append(helper.make_attribute(name, value, attr_type=kind))

    return damage


def damages(node: onnx.NodeProto) -> Iterator[tuple[str, Damage]]:
    for which, _ in enumerate(lists_of(node)):
        yield f"list {which} is shorter", shorter(which)
        yield f"list {which} is longer", longer(which)
    if node.op_type == "Scan":
        yield from ((f"{name} = {value}", with_attribute(name, value)) for name in LISTS for value in VALUES)
        yield from ((f"scans {count}", with_attribute("num_scan_inputs", count)) for count in COUNTS)


def flow_of(model: onnx.ModelProto) -> onnx.NodeProto:
    (node,) = (node for node in model.graph.node if node.op_type in ("If", "Loop", "Scan"))
    return node


@pytest.fixture(scope="module")
def rules() -> RuleBase:
    return load_rules()


@pytest.mark.parametrize("name", FLOWS)
def test_damaged_control_flow_is_refused(rules: RuleBase, name: str) -> None:
    refused = 0
    whole = onnx.parser.parse_model(FLOWS[name])
    for what, damage in damages(flow_of(whole)):
        damaged = onnx.ModelProto()
        damaged.CopyFrom(whole)
        damage(flow_of(damaged))
        try:
            import_model(damaged, rules)
        except GraphError:
            refused += 1
        except Exception as error:
            raise AssertionError(f"{what}: {error!r}") from error
    assert refused >= 4


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("scan", with_attribute("num_scan_inputs", 3), "it scans 3 inputs .* and its body takes 2"),
        ("scan", with_attribute("scan_input_axes", [0, 0]), "there are 2 entries of scan_input_axes, but 1 scanned"),
        ("scan", with_attribute("scan_input_axes", [2]), "it scans axis 2 of a tensor of 2 axes"),
        ("loop", longer(0), "there are 3 inputs of its body, but 4 of the step, the condition and the states"),
        ("choice", longer(OUTPUTS), "there are 1 results of its then_branch, but 2 outputs"),
        ("scan of opset 8", with_attribute("num_scan_inputs", 2), "the axes that it scans have 2, 3 elements"),
    ],
)
def test_the_message_says_what_does_not_fit(rules: RuleBase, name: str, damage: Damage, message: str) -> None:
    damaged = onnx.parser.parse_model(FLOWS[name])
    damage(flow_of(damaged))
    with pytest.raises(GraphError, match=message):
        import_model(damaged, rules)


def test_a_body_may_list_its_initializers_among_its_inputs(rules: RuleBase) -> None:
    model = onnx.parser.parse_model(FLOWS["scan"])
    (body,) = (attribute.g for attribute in flow_of(model).attribute if attribute.name == "body")
    body.input.append(helper.make_tensor_value_info("more", onnx.TensorProto.FLOAT, [3]))
    with pytest.raises(GraphError, match="there are 3 inputs of its body"):
        import_model(model, rules)
    body.initializer.append(helper.make_tensor("more", onnx.TensorProto.FLOAT, [3], [1.0, 2.0, 3.0]))
    import_model(model, rules)
