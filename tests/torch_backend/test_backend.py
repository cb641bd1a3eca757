"""`torch.compile` with the backend: outputs, memory, writes, shapes and what is refused."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from tests.torch_backend.torch_extra import torch

from smartmem_rules.torch_backend.backend import smartmem  # isort: skip
from smartmem_rules.torch_backend.compiled import CompiledGraph  # isort: skip
from smartmem_rules.torch_backend.errors import LeftToEagerWarning  # isort: skip


@pytest.fixture(autouse=True)
def fresh() -> None:
    """No graph of another test."""
    torch._dynamo.reset()
    torch.manual_seed(0)


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[CompiledGraph]:
    """The graphs that the backend gets."""
    made: list[CompiledGraph] = []
    init = CompiledGraph.__init__

    def noted(self: CompiledGraph, *arguments: Any) -> None:
        init(self, *arguments)
        made.append(self)

    monkeypatch.setattr(CompiledGraph, "__init__", noted)
    return made


def agrees(function: Callable[..., Any], *inputs: Any, compiled: Any = None) -> Any:
    """Compile, compare with eager execution, and give the results of the compiled function."""
    copies = copy.deepcopy(inputs)
    with torch.no_grad():
        found = (compiled or torch.compile(function, backend=smartmem))(*inputs)
        wanted = function(*copies)
    pairs = [(found, wanted)] if isinstance(wanted, torch.Tensor) else list(zip(found, wanted, strict=True))
    for one, other in [*pairs, *zip(inputs, copies, strict=True)]:
        if isinstance(other, torch.Tensor):
            assert (one.dtype, one.shape, one.stride()) == (other.dtype, other.shape, other.stride())
            torch.testing.assert_close(one, other)
    return found


def block() -> Any:
    """A few layers."""
    layers = (torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4))
    return torch.nn.Sequential(*layers).eval()


def test_the_entry_point_is_found_by_name() -> None:
    from importlib.metadata import entry_points

    (found,) = [one for one in entry_points(group="torch_dynamo_backends") if one.name == "smartmem"]
    assert found.load() is smartmem


def test_a_module_is_one_plan_without_operators_left(graphs: list[CompiledGraph]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeftToEagerWarning)
        agrees(block(), torch.randn(3, 8))
    assert [len(graph.plans) for graph in graphs] == [1]


def test_a_second_call_takes_the_plan(graphs: list[CompiledGraph]) -> None:
    module = block()
    compiled = torch.compile(module, backend=smartmem)
    for _ in range(3):
        agrees(module, torch.randn(3, 8), compiled=compiled)
    assert [len(graph.plans) for graph in graphs] == [1]


def test_new_shapes_get_new_plans_of_one_graph(graphs: list[CompiledGraph]) -> None:
    module = block()
    compiled = torch.compile(module, backend=smartmem, dynamic=True)
    for rows in (3, 5, 3, 2):
        agrees(module, torch.randn(rows, 8), compiled=compiled)
    assert [len(graph.plans) for graph in graphs] == [3]


def test_several_outputs_of_other_types_and_strides() -> None:
    def function(x: Any) -> Any:
        largest = x.max(-1)
        return (x + 1).transpose(0, 1), x > 0, largest.indices, largest.values, x.sum(1, keepdim=True).expand(3, 5)

    agrees(function, torch.randn(3, 5))


def test_inputs_that_are_returned_and_views_of_them_share_memory() -> None:
    x = torch.randn(4, 6)
    same, view, _ = agrees(lambda x: (x, x[1:3], x * 2), x)
    assert same is x
    assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


def test_writes_to_inputs_happen() -> None:
    def function(x: Any, y: Any) -> Any:
        x.mul_(2)
        y[0] = x[1]
        return x + y

    agrees(function, torch.randn(3, 4), torch.randn(3, 4))


def test_writes_to_buffers_happen() -> None:
    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(4))

        def forward(self, x: Any) -> Any:
            self.total += x
            return self.total * 2

    ours, theirs, x = Counter(), Counter(), torch.randn(4)
    compiled = torch.compile(ours, backend=smartmem)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(compiled(x), theirs(x))
    torch.testing.assert_close(ours.total, theirs.total)


def test_inputs_with_gaps_are_read_by_their_strides() -> None:
    agrees(lambda x: torch.relu(x) + 1, torch.randn(8, 6)[::2, 1:5])
    agrees(lambda x: torch.relu(x) + 1, torch.randn(6, 8).T)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int64, torch.int32])
def test_element_types(dtype: Any) -> None:
    agrees(lambda x: x * 3 - x, (torch.randn(4, 5) * 10).to(dtype))


def test_channels_last_outputs_keep_their_strides() -> None:
    module = torch.nn.Conv2d(3, 4, 3).eval().to(memory_format=torch.channels_last)
    agrees(module, torch.randn(1, 3, 8, 8).to(memory_format=torch.channels_last))


@pytest.mark.parametrize("write", ["in place", "data", "numpy", "load"])
def test_changed_parameters_are_seen(write: str) -> None:
    module = block()
    compiled = torch.compile(module, backend=smartmem)
    x = torch.randn(3, 8)
    agrees(module, x, compiled=compiled)
    weight = module[0].weight
    if write == "in place":
        with torch.no_grad():
            weight.mul_(2)
    elif write == "data":
        weight.data.mul_(2)
    elif write == "numpy":
        weight.detach().numpy()[:] *= 2
    else:
        module.load_state_dict({name: value * 2 for name, value in module.state_dict().items()})
    agrees(module, x, compiled=compiled)


def test_parameters_that_change_often_become_inputs(graphs: list[CompiledGraph]) -> None:
    module = block()
    compiled = torch.compile(module, backend=smartmem)
    x = torch.randn(3, 8)
    plans = []
    for _ in range(5):
        agrees(module, x, compiled=compiled)
        plans.append(graphs[0].plans[-1])
        with torch.no_grad():
            module[0].weight.mul_(1.1)
    assert plans[2] is plans[3] is plans[4]


def test_two_modules_with_one_graph_have_their_own_parameters() -> None:
    first, second = block(), block()
    compiled = [torch.compile(module, backend=smartmem) for module in (first, second)]
    x = torch.randn(3, 8)
    for _ in range(2):
        agrees(first, x, compiled=compiled[0])
        agrees(second, x, compiled=compiled[1])


def test_random_numbers_are_those_of_eager_execution() -> None:
    def function(x: Any) -> Any:
        return torch.nn.functional.dropout(torch.relu(x), 0.5) * 3

    compiled, x = torch.compile(function, backend=smartmem), torch.randn(4, 5)
    with torch.no_grad():
        for seed in (1, 2):
            torch.manual_seed(seed)
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                found = compiled(x)
            torch.manual_seed(seed)
            torch.testing.assert_close(found, function(x))
            if seed == 1:
                assert any(
                    "random numbers" in str(one.message) and "test_backend.py" in str(one.message) for one in warned
                )


def test_a_graph_break_is_explained_with_its_line() -> None:
    def function(x: Any) -> Any:
        y = torch.relu(x)
        print("here", end="")
        return y + 1

    with pytest.warns(LeftToEagerWarning, match=r"a graph ends at .*test_backend.py:\d+.*print"):
        agrees(function, torch.randn(3, 4))


@pytest.mark.parametrize("how", ["input", "module"])
def test_gradients_are_refused(how: str) -> None:
    compiled = torch.compile(block(), backend=smartmem)
    x = torch.randn(3, 8, requires_grad=how == "input")
    with pytest.raises(Exception, match=r"computes no gradients: call the model under torch.no_grad\(\)"):
        compiled(x)


def test_inference_mode_runs() -> None:
    module = block()
    x = torch.randn(3, 8)
    with torch.inference_mode():
        torch.testing.assert_close(torch.compile(module, backend=smartmem)(x), module(x))


def test_an_unknown_option_is_refused() -> None:
    with torch.no_grad(), pytest.raises(Exception, match="has no option 'levl'; did you mean"):
        torch.compile(block(), backend=smartmem, options={"levl": "none"})(torch.randn(3, 8))


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ({"level": "layot"}, "no level 'layot'; did you mean `layout`"),
        ({"device": "gpu77"}, "no device 'gpu77'"),
        ({"disable": ["doubel_relu"]}, "no rule, schedule or fuse block `doubel_relu`"),
        ({"rules": "mine.smr"}, "rules is 'mine.smr'; give a list of files"),
    ],
)
def test_an_option_that_names_nothing_is_an_error_and_no_reason_to_leave_all_to_pytorch(
    option: dict[str, object], reason: str
) -> None:
    with torch.no_grad(), pytest.raises(Exception, match=reason):
        torch.compile(block(), backend=smartmem, options=option)(torch.randn(3, 8))


def test_the_level_is_an_option(graphs: list[CompiledGraph]) -> None:
    module = block()
    for level in ("none", "smartmem"):
        torch._dynamo.reset()
        agrees(module, torch.randn(3, 8), compiled=torch.compile(module, backend=smartmem, options={"level": level}))
    none, smart = (len(graph.plans[0].plan.kernels) for graph in graphs)
    assert none > smart
