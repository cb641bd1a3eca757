"""The template that kernels were chosen by is the one that they are launched with, and so is its time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from smartmem_rules.graph.importer import import_model
from smartmem_rules.plan import build
from smartmem_rules.plan.fusion.alternatives import Pool
from smartmem_rules.plan.joint import JointChoice, choose_kernels
from smartmem_rules.plan.kernel.launch import Chain
from smartmem_rules.plan.kernel.model import Kernel, Stored
from smartmem_rules.plan.layout.candidates import LayoutOptions
from smartmem_rules.plan.means import PlanOptions
from smartmem_rules.plan.schedule.contraction.group import GroupChoice
from smartmem_rules.plan.schedule.contraction.sizing import panel_of, resources_of
from smartmem_rules.plan.schedule.contraction.winograd_sizes import filters_of
from smartmem_rules.plan.schedule.records import GroupSchedule, PanelSchedule, TileSchedule, WinogradSchedule
from smartmem_rules.plan.schedule.scheduler import Scheduler
from smartmem_rules.plan.schedule.templates import Form, GroupForm, PanelForm, TileForm, WinogradForm
from smartmem_rules.rulebase.base import load_rules
from tests.plan.models import Model, Node, model, normal

BASE = load_rules()


def product(m: int, k: int, n: int) -> Model:
    """Of a reduction that may be too short for tiles in local memory."""
    return Model(model([("MatMul", "x w", "y")], {"x": normal(m, k)}, "y", {"w": normal(k, n)}), {})


def attention() -> Model:
    nodes: list[Node] = [
        ("MatMul", "q k", "s"),
        ("Softmax", "s", "p"),
        ("MatMul", "p v", "a"),
        ("MatMul", "a w", "y"),
    ]
    feeds = {"q": normal(4, 64, 32), "k": normal(4, 32, 64), "v": normal(4, 64, 32)}
    return Model(model(nodes, feeds, "y", {"w": normal(32, 48)}), {})


def convolutions() -> Model:
    """Windows of three by three, which may be filtered, and products over the same rows behind them."""
    nodes: list[Node] = [
        ("Conv", "x w", "a", {"pads": [1, 1, 1, 1]}),
        ("Relu", "a", "b"),
        ("Conv", "b v", "c"),
        ("Conv", "c u", "y", {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    ]
    constants = {"w": normal(64, 64, 3, 3), "v": normal(128, 64, 1, 1), "u": normal(32, 128, 3, 3)}
    return Model(model(nodes, {"x": normal(1, 64, 56, 56)}, "y", constants), {})


CASES: list[tuple[str, Callable[[], Model], set[str]]] = [
    ("pocl", lambda: product(64, 96, 80), {"contraction_panel"}),
    ("pocl", attention, {"contraction_panel"}),
    ("pocl", convolutions, {"contraction_panel", "winograd_4"}),
    ("nvidia", lambda: product(256, 512, 256), {"contraction_group"}),
    ("nvidia", lambda: product(256, 4, 256), {"contraction_tile"}),
    ("nvidia", convolutions, {"contraction_group"}),
    ("nvidia", attention, {"contraction_group"}),
    ("adreno_740", lambda: product(1024, 512, 512), {"contraction_group_texture"}),
    ("adreno_740", lambda: product(8, 8, 8), {"contraction_texture"}),
    ("adreno_740", convolutions, {"contraction_group_texture"}),
]


def planned(device: str, program: Model, monkeypatch: pytest.MonkeyPatch) -> tuple[build.Planning, dict[str, float]]:
    """Kernels before they are sized, and the nanoseconds that the choice of kernels and layouts counted for each."""
    assumed: dict[str, float] = {}

    def noted(pool: Pool, tensors: dict[str, Stored], where: LayoutOptions, times: dict[int, float]) -> JointChoice:
        assumed.update((kernel.name, times[n]) for n, kernel in enumerate(pool.kernels) if n in times)
        return choose_kernels(pool, tensors, where, times)

    monkeypatch.setattr(build, "choose_kernels", noted)
    graph = import_model(program.proto, BASE, {})
    return build.prepare(graph, BASE, BASE.devices[device], PlanOptions(level="smartmem")), assumed


def same(form: Form, own: Kernel) -> bool:
    """Whether a kernel got the schedule block and the sizes of a decision."""
    assert own.schedule is not None
    if own.schedule.name != form.schedule.name:
        return False
    match form, own.schedule:
        case PanelForm(), PanelSchedule() as got:
            return (form.sizes.rows, form.sizes.columns, form.sizes.block_rows) == (
                got.rows, got.columns, got.block_rows
            )  # fmt: skip
        case WinogradForm(), WinogradSchedule() as got:
            return (form.sizes.outputs, form.sizes.block_rows) == (got.outputs, got.block_rows)
        case GroupForm(), GroupSchedule() as got:
            return form.choice == GroupChoice(got.tile, got.splits)
        case TileForm(), TileSchedule() as got:
            return (form.rows, form.columns) == (got.rows, got.columns)
    return False


@pytest.mark.parametrize(("device", "program", "schedules"), CASES)
def test_the_time_that_was_assumed_is_that_of_the_schedule(
    device: str, program: Callable[[], Model], schedules: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    planning, assumed = planned(device, program(), monkeypatch)
    scheduler = planning.scheduler(dict(planning.tensors), None)
    seen = set()
    for single in (single for launch in planning.launches for single in launch.singles):
        kernel = single.kernel
        if kernel.contraction is None or single.block_rows is not None:
            continue
        form = scheduler.templates.required(kernel)
        own = scheduler.schedule(kernel)
        assert same(form, own), (form, own.schedule)
        assert assumed[kernel.name] == scheduler.costs.with_form(kernel, form)
        seen.add(form.schedule.name)
    for launch in planning.launches:
        if isinstance(launch, Chain):
            seen |= chained(launch, scheduler)
    assert schedules <= seen, seen


def chained(launch: Chain, scheduler: Scheduler) -> set[str]:
    """Check that the first step of a chain is filtered exactly where the chain was priced so."""
    panel, first = panel_of(scheduler.schedules), launch.steps[0]
    assert panel is not None
    if first.kernel.contraction is None:
        return set()
    sizes = resources_of(first.kernel, panel, scheduler.constants, first.block_rows)
    assert sizes is not None
    units = scheduler.device.compute.units
    filters = filters_of(first.kernel, scheduler.schedules, panel, sizes.constant, units)
    priced = any(first.block_rows in one.blocks for one in filters)
    own = scheduler.schedule(first.kernel, block_rows=first.block_rows).schedule
    assert own is not None
    assert isinstance(own, WinogradSchedule) == priced
    return {own.name}
