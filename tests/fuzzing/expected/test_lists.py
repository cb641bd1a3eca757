"""Sequences on a model's course: what ONNX does not define has no reference."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from smartmem_rules.fuzzing.expected.courses import straightened
from smartmem_rules.fuzzing.expected.node_runner import NoReference

HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'
X = {"x": np.arange(6, dtype=np.float32).reshape(3, 2)}


def course(text: str) -> list[str]:
    model = onnx.parser.parse_model(HEAD + f"f (float[3, 2] x) => (float[?, ?] y) {{ {text} }}")
    return [node.op_type for node in straightened(model, X).graph.node]


def test_a_sequence_becomes_the_nodes_that_compute_its_members() -> None:
    assert course("s = SplitToSequence <axis = 0> (x)  y = ConcatFromSequence <axis = 1> (s)") == [
        *["Slice"] * 3, "Concat"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("s = SequenceConstruct (x)  i = Constant <value_int = 1> ()  y = SequenceAt (s, i)", "outside"),
        ("s = SequenceEmpty ()  y = ConcatFromSequence <axis = 0> (s)", "empty sequence"),
        ("n = Neg (x)  s = SplitToSequence <axis = 0> (n)  t = SequenceInsert (s, x)\n"
         "y = ConcatFromSequence <axis = 0, new_axis = 1> (t)", "different shapes"),
        ("n = Constant <value: tensor = int64 {0}> ()  s = SplitToSequence <axis = 0> (x, n)\n"
         "y = ConcatFromSequence <axis = 0> (s)", "no element"),
        ("n = Constant <value_ints = [1, 1]> ()  s = SplitToSequence <axis = 0> (x, n)\n"
         "y = ConcatFromSequence <axis = 0> (s)", "not the whole"),
        ("y = SequenceAt (x, x)", "no sequence"),
        ("i = Constant <value_int = 0> ()  s = SequenceConstruct (x)  o = Identity (s)\n"
         "p = SequenceErase (o, i)  y = SequenceAt (p, i)", "outside"),
    ],
)  # fmt: skip
def test_what_has_no_meaning_has_no_reference(text: str, reason: str) -> None:
    with pytest.raises(NoReference, match=reason):
        course(text)
