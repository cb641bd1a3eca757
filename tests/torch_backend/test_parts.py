"""Graphs that no plan takes whole."""

from __future__ import annotations

from typing import Any

import pytest

from tests.torch_backend.torch_extra import torch

from smartmem_rules.torch_backend.compiled import CompiledGraph  # isort: skip
from smartmem_rules.torch_backend.errors import LeftToEagerWarning  # isort: skip
from smartmem_rules.torch_backend.options import TorchOptions  # isort: skip


def graph_of(function: Any, *inputs: Any) -> Any:
    """A graph of ATen operators."""
    from torch.fx.experimental.proxy_tensor import make_fx

    return make_fx(function)(*inputs)


def solved(x: Any, weight: Any) -> Any:
    """Layers around an operator that ONNX does not have."""
    inverse = torch.linalg.inv(torch.relu(x) + torch.eye(4) * 9)
    return torch.softmax(inverse @ weight, -1), x.relu()


def test_what_onnx_does_not_have_is_left_to_pytorch_and_named() -> None:
    x, weight = torch.randn(4, 4), torch.randn(4, 3)
    compiled = CompiledGraph(graph_of(solved, x, weight), {1}, TorchOptions())
    with pytest.warns(LeftToEagerWarning, match="linalg_inv_ex"):
        first = compiled(x, weight)
    for one, other in zip(first, solved(x, weight), strict=True):
        torch.testing.assert_close(one, other)
    x = torch.randn(4, 4)
    for one, other in zip(compiled(x, weight), solved(x, weight), strict=True):
        torch.testing.assert_close(one, other)
    assert len(compiled.plans) == 2


def test_a_parameter_of_a_part_is_a_constant_of_its_plan() -> None:
    x, weight = torch.randn(4, 4), torch.randn(4, 3)
    compiled = CompiledGraph(graph_of(solved, x, weight), {1}, TorchOptions())
    with pytest.warns(LeftToEagerWarning):
        compiled(x, weight)
    plans = [plan.plan.plan for plan in compiled.plans]
    assert weight.shape not in [plan.tensors[name].type.shape for plan in plans for name in plan.inputs]


def test_a_plan_with_other_outputs_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    from smartmem_rules.optimized import OptimizedPlan

    run = OptimizedPlan.run
    monkeypatch.setattr(OptimizedPlan, "run", lambda self, feeds: {n: a + 1 for n, a in run(self, feeds).items()})
    x = torch.randn(4, 4)
    compiled = CompiledGraph(graph_of(lambda x: (torch.relu(x),), x), set(), TorchOptions())
    with pytest.warns(LeftToEagerWarning, match="does not compute what PyTorch computes"):
        (found,) = compiled(x)
    torch.testing.assert_close(found, torch.relu(x))


def test_a_graph_that_reads_elements_as_numbers_is_left_whole() -> None:
    def function(x: Any) -> Any:
        return (x * x.sum().item(),)

    graph = torch.fx.Graph()
    given = graph.placeholder("x")
    total = graph.call_function(torch.ops.aten.sum.default, (given,))
    number = graph.call_function(torch.ops.aten._local_scalar_dense.default, (total,))
    graph.output((graph.call_function(torch.ops.aten.mul.Tensor, (given, number)),))
    compiled = CompiledGraph(torch.fx.GraphModule(torch.nn.Module(), graph), set(), TorchOptions())
    x = torch.randn(3)
    with pytest.warns(LeftToEagerWarning, match="makes a number of the elements of a tensor"):
        torch.testing.assert_close(compiled(x)[0], function(x)[0])
    torch.testing.assert_close(compiled(x + 1)[0], function(x + 1)[0])


@pytest.mark.parametrize("check", [True, False])
def test_complex_numbers_are_left_to_pytorch(check: bool) -> None:
    def values(x: Any) -> tuple[Any, ...]:
        return (torch.linalg.eigvals(x.relu()).real.sin() + 1,)

    x = torch.randn(4, 4)
    compiled = CompiledGraph(graph_of(values, x), set(), TorchOptions(check=check))
    with pytest.warns(LeftToEagerWarning, match="complex numbers"):
        (found,) = compiled(x)
    torch.testing.assert_close(found, values(x)[0])
