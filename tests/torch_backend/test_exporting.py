"""PyTorch to ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.torch_backend.torch_extra import torch

from smartmem_rules.graph.failures import UncoveredNodesError  # isort: skip
from smartmem_rules.torch_backend.errors import RefusedError  # isort: skip
from smartmem_rules.torch_backend.exporting import exported_graph, exported_program  # isort: skip


class Scaled(torch.nn.Module):
    """A rectified product with a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.randn(3))

    def forward(self, x: Any) -> Any:
        """One line for each operator."""
        y = torch.relu(x)
        return y * self.scale


def test_weights_keep_their_memory() -> None:
    module = Scaled().eval()
    program = exported_program(torch.export.export(module, (torch.randn(2, 3),)))
    (weight,) = program.weights.values()
    assert np.shares_memory(weight, module.scale.detach().numpy())
    assert not program.model.graph.initializer


def test_refused_nodes_are_named_with_their_lines() -> None:
    program = exported_program(torch.export.export(Scaled().eval(), (torch.randn(2, 3),)))
    (name,) = [node.name for node in program.model.graph.node if node.op_type == "Relu"]
    text = program.explained(UncoveredNodesError("1 node cannot be imported", frozenset({name})))
    assert text.startswith("1 node cannot be imported\n  Relu at ")
    assert text.endswith("y = torch.relu(x)")


def test_the_reason_of_the_exporter_is_given() -> None:
    class Inverse(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.linalg.inv(x)

    with pytest.raises(RefusedError, match=r"torch's ONNX exporter: .*linalg_inv"):
        exported_graph(Inverse(), [torch.eye(3)])
