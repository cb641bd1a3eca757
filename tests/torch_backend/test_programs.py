"""`smartmem_rules.optimize` of modules and exported programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import smartmem_rules as sm
from tests.torch_backend.torch_extra import torch

from smartmem_rules.torch_backend.errors import TorchError  # isort: skip


class Layers(torch.nn.Module):
    """A layer, a sum and a softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 4)

    def forward(self, first: Any, second: Any) -> Any:
        """Two inputs, two outputs."""
        y = torch.relu(self.layer(first))
        return torch.softmax(y, -1), y + second


def runs(plan: Any, module: Any, *inputs: Any) -> None:
    """A plan gives what the module gives."""
    found = plan.run(dict(zip(("first", "second"), inputs, strict=False)))
    with torch.no_grad():
        wanted = module(*inputs)
    for one, other in zip(found.values(), wanted, strict=True):
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("how", ["module", "positional", "program"])
def test_modules_and_programs_become_plans(how: str) -> None:
    module, inputs = Layers().eval(), (torch.randn(3, 8), torch.randn(3, 4))
    if how == "module":
        plan = sm.optimize(module, example_inputs=inputs)
    elif how == "positional":
        plan = sm.optimize(module, inputs)
    else:
        plan = sm.optimize(torch.export.export(module, inputs))
    runs(plan, module, *inputs)
    assert plan.check().passed


def test_a_bounded_symbolic_dimension_becomes_a_range() -> None:
    module, inputs = Layers().eval(), (torch.randn(3, 8), torch.randn(3, 4))
    rows = {0: torch.export.Dim("rows", min=1, max=12)}
    plan = sm.optimize(torch.export.export(module, inputs, dynamic_shapes=(rows, rows)))
    assert list(plan.dimensions.values()) == [(1, 12)]
    for count in (1, 5, 12):
        runs(plan, module, torch.randn(count, 8), torch.randn(count, 4))


def test_an_unbounded_symbolic_dimension_gets_a_plan_for_each_extent() -> None:
    module, inputs = Layers().eval(), (torch.randn(3, 8), torch.randn(3, 4))
    rows = {0: torch.export.Dim("rows")}
    plan = sm.optimize(torch.export.export(module, inputs, dynamic_shapes=(rows, rows)))
    for count in (2, 7):
        runs(plan, module, torch.randn(count, 8), torch.randn(count, 4))


def test_large_weights_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    from smartmem_rules.torch_backend import programs

    seen: list[bool] = []
    taken = programs.import_model

    def noted(*arguments: Any, **named: Any) -> Any:
        graph = taken(*arguments, **named)
        weight = module.layer.weight.detach().numpy()
        seen.append(any(np.shares_memory(array, weight) for array in graph.constants.values()))
        return graph

    monkeypatch.setattr(programs, "_MOST_HELD", 0)
    monkeypatch.setattr(programs, "import_model", noted)
    module, inputs = Layers().eval(), (torch.randn(3, 8), torch.randn(3, 4))
    runs(sm.optimize(module, inputs), module, *inputs)
    assert seen == [True]


def test_what_cannot_be_exported_is_refused_clearly() -> None:
    module, inputs = Layers(), (torch.randn(3, 8), torch.randn(3, 4))
    with pytest.raises(TorchError, match=r"training mode; call module\.eval"):
        sm.optimize(module, inputs)
    with pytest.raises(TorchError, match="needs inputs to be exported with"):
        sm.optimize(module.eval())

    class Writes(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            x.add_(1)
            return x * 2

    with pytest.raises(TorchError, match="writes to x"):
        sm.optimize(Writes().eval(), inputs[:1])

    class Inverse(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.linalg.inv(x)

    with pytest.raises(TorchError, match="linalg_inv"):
        sm.optimize(Inverse().eval(), (torch.randn(3, 3),))
