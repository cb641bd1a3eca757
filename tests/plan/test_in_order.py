"""Kernels of GPUs that need each other in one launch: on PoCL, with matrix units in plain OpenCL C."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from smartmem_rules import load, optimize
from smartmem_rules.environment import EMULATED_UNITS, ONE_LAUNCH
from smartmem_rules.language.blocks.fuse import Prologue
from smartmem_rules.plan.fusion.policy import policy_of
from smartmem_rules.plan.kernel.launch import Ordered
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.runtime.executor import Executor, RunError
from tests.plan.test_ordered import agree, agree_on_threads, feeds, layers, ordered_launches

pytest.importorskip("onnxruntime")

WITHOUT = "one_after_another_in_groups"


@pytest.fixture(scope="module", params=["8.0", pytest.param("9.0", marks=pytest.mark.exhaustive)])
def plans(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """Plans with and without such launches, as files."""
    folder = tmp_path_factory.mktemp("in_order")
    path = layers(folder, 2)
    with EMULATED_UNITS.set_to(request.param):
        plan = optimize(path, device="nvidia", dtype="float16")
        apart = optimize(path, device="nvidia", dtype="float16", disable=[WITHOUT])
        with ONE_LAUNCH.set_to("off"):
            without = optimize(path, device="nvidia", dtype="float16")
        assert len(without.kernels) == len(apart.kernels)
        launch = the_launch(plan.kernels)
        assert len(launch.steps) > len(plan.kernels) < len(apart.kernels)
        assert not ordered_launches(apart.kernels)
        plan.save(folder / "in_order.plan")
        apart.save(folder / "apart.plan")
        yield folder / "in_order.plan", folder / "apart.plan"


def the_launch(launches: list[object]) -> Ordered:
    (found,) = (launch for launch in launches if isinstance(launch, Ordered))
    assert found.group_items > 0
    return found


def test_one_launch_gives_what_many_give(plans: tuple[Path, Path]) -> None:
    plan, apart = map(load, plans)
    agree(plan, apart, 4)
    # each run leaves the counters as it found them
    (state,) = (name for name in plan.plan.tensors if name.endswith("@order"))
    assert not plan.prepare().fetch(state).any()


def test_tasks_ask_for_constants_before_they_wait(plans: tuple[Path, Path]) -> None:
    (source,) = (one for one in load(plans[0]).plan.sources if one.waiting is not None)
    before, behind = source.text.split("smr_order_see(at) < tasks")
    asked, done = re.findall(r"case (\d+): \w+_ahead\(", before), re.findall(r"case (\d+): (\w+)\(", behind)
    assert asked
    assert {*asked} <= {number for number, _ in done}
    assert not [name for _, name in done if name.endswith("_ahead")]


@pytest.mark.parametrize("threads", ["1", pytest.param("4", marks=pytest.mark.exhaustive)])
def test_any_number_of_threads(plans: tuple[Path, Path], threads: str) -> None:
    agree_on_threads(plans, threads, 3)


def test_who_waits_in_vain_gives_up_and_is_named(plans: tuple[Path, Path]) -> None:
    plan = load(plans[0])
    device, made = plan.prepare().device, plan.plan

    def in_vain(text: str) -> str:
        """One task more than there are is waited for, and not for long."""
        assert "smr_order_see(at) < tasks" in text
        text = text.replace("smr_order_see(at) < tasks", "smr_order_see(at) < tasks + 1")
        found = text.split("if (polls == ")[1].split("L")[0]
        return text.replace(f"{found}L", "100L")

    sources = [replace(one, text=in_vain(one.text)) if one.waiting is not None else one for one in made.sources]
    wrong = replace(
        made, enqueues=[replace(one, source=source) for one, source in zip(made.enqueues, sources, strict=True)]
    )
    executor = Executor(wrong, device)
    for _ in range(2):
        with pytest.raises(RunError, match=r"gave up: its kernel k\d+_\w+ waited for others"):
            executor.run(feeds(0))


@pytest.mark.exhaustive
def test_a_launch_of_many_kernels_is_asked(tmp_path: Path) -> None:
    with EMULATED_UNITS.set_to("8.0"):
        plan = optimize(layers(tmp_path, 2), device="nvidia", dtype="float16", probes=True)
    the_launch(plan.kernels)
    assert plan.plan.probes
    report = plan.self_test
    assert report is not None
    assert not report.findings


@pytest.mark.exhaustive  # compiling the checks of a launch of that many kernels takes long
def test_every_access_is_inside(tmp_path: Path) -> None:
    with EMULATED_UNITS.set_to("8.0"):
        plan = optimize(layers(tmp_path, 2), device="nvidia", dtype="float16", debug=True)
        the_launch(plan.kernels)
        assert plan.check().passed


def test_what_others_write_is_not_read_by_way_of_a_cache_of_constants(plans: tuple[Path, Path]) -> None:
    (source,) = (one for one in load(plans[0]).plan.sources if one.waiting is not None)
    constants = {f"p{n}" for n, one in enumerate(source.arguments) if one.tensor.endswith("@constants")}
    heads = dict(re.findall(r"static void (smr_part_\w+)\(\s*(.*?)\) \{", source.text, re.S))
    calls = re.findall(r"case \d+: (\w+)\((.*), item, group, smr_local", source.text)
    assert len(calls) > 2
    for name, arguments in calls:
        given = re.split(r", (?=\(__global|p\d)", arguments)
        for parameter, argument in zip(heads[name].split(",\n"), given, strict=False):
            if "const " in parameter and "restrict" in parameter:
                assert {*re.findall(r"\bp\d+", argument)} <= constants, (name, argument)


def test_the_registers_of_a_unit_suffice_for_all_work_groups() -> None:
    compute = load_rules().devices["nvidia"].compute
    assert compute.registers_of_each(512) == 128
    assert compute.registers_of_each(768) == 80
    assert compute.registers_of_each(256) == 0, "no work-item takes more than 255"
    assert replace(compute, unit_registers=0).registers_of_each(512) == 0


def test_cycles_are_those_of_the_clock_where_it_is_known() -> None:
    compute = load_rules().devices["nvidia"].compute
    assert compute.cycle(1100) == compute.cycle(101) == pytest.approx(1 / 1.98)
    unknown = replace(compute, clock_ghz=0.0)
    assert unknown.cycle(1100) == pytest.approx(2200 * compute.units / compute.peak_gflops)


def test_only_products_of_few_columns_make_their_rows() -> None:
    base = load_rules()
    policy = policy_of(base.levels["smartmem"], base.tables, base.fuses)
    (rule,) = (one for one in policy.with_columns(128).rules if isinstance(one, Prologue) and one.template == "group")
    assert rule.columns == 128 < next(one for one in policy.rules if one.name == rule.name).columns
