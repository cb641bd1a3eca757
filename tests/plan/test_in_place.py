"""Tensors written over others: only where no work-item can notice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from smartmem_rules.plan.artefact import Plan, Source
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.simulate.launch import TracedLaunch, Window, trace
from smartmem_rules.simulate.memory import MemoryModel
from tests.plan.models import Array, Model, Node, model, normal
from tests.plan.random_graphs import models
from tests.plan.running import LEVELS, Mode, by_onnxruntime, drawing, plan_of, prepare

TOLERANCE = 2e-5
PAD = {"pads": [1, 1, 1, 1]}
IMAGE = {"x": normal(1, 8, 12, 12)}


def weights(*shape: int) -> Array:
    return normal(*shape, seed=sum(shape)) / 8


KERNEL = {"w": weights(8, 8, 3, 3)}
RESIDUAL: list[Node] = [
    ("Conv", "x w", "a", PAD),
    ("Conv", "a w", "b", PAD),
    ("Conv", "b w", "c", PAD),
    ("Add", "c a", "d"),
    ("Conv", "d w", "y", PAD),
]


def planned(nodes: list[Node], feeds: dict[str, Array], constants: dict[str, Array], mode: Mode) -> dict[str, str]:
    """What is written in place, after the results over NaN were compared with those of ONNX Runtime."""
    proto = model(nodes, feeds, "y", constants)
    plan, executor = prepare(proto, mode)
    expected = by_onnxruntime(proto, feeds)["y"]
    for _ in range(2):
        executor.poison()
        got = executor.run(feeds)["y"]
        tolerance = TOLERANCE if mode.dtype == "float32" else 2e-2
        assert float(np.abs(got - expected).max()) <= tolerance * max(1.0, float(np.abs(expected).max()))
    return {new: old for launch in plan.launches for new, old in launch.in_place.items()}


@pytest.mark.parametrize(
    ("device", "dtype"),
    [
        ("pocl", "float32"),
        ("nvidia", "float16"),
        pytest.param("pocl", "float16", marks=pytest.mark.exhaustive),
        pytest.param("nvidia", "float32", marks=pytest.mark.exhaustive),
    ],
)
def test_a_sum_is_written_over_its_addend(device: str, dtype: str) -> None:
    assert planned(RESIDUAL, IMAGE, KERNEL, Mode(device=device, dtype=dtype)) == {"d": "a"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("level", LEVELS[:-1])
def test_other_levels_keep_tensors_apart(level: str) -> None:
    assert planned(RESIDUAL, IMAGE, KERNEL, Mode(level)) == {}


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float16", marks=pytest.mark.exhaustive)])
def test_images_are_not_written_over(dtype: str) -> None:
    """No kernel may read and write one image."""
    assert planned(RESIDUAL, IMAGE, KERNEL, Mode(memory="image", device="adreno_740", dtype=dtype)) == {}


def test_what_is_read_in_windows_is_not_written_over() -> None:
    nodes = [*RESIDUAL[:2], ("Add", "b a", "d"), RESIDUAL[4]]
    assert planned(nodes, IMAGE, KERNEL, Mode()) == {}


def test_what_is_read_again_is_not_written_over() -> None:
    nodes = [*RESIDUAL, ("Conv", "y w", "e", PAD), ("Add", "e a", "z")]
    renamed: list[Node] = [(n[0], n[1], {"y": "f", "z": "y"}.get(n[2], n[2]), *n[3:]) for n in nodes]  # type: ignore[misc]
    last = [(n[0], n[1].replace("y", "f"), *n[2:]) for n in renamed]
    assert "d" not in planned(last, IMAGE, KERNEL, Mode())  # type: ignore[arg-type]


def test_what_is_read_elsewhere_is_not_written_over() -> None:
    """The addend is transposed: other work-items read what this one would overwrite."""
    nodes = [*RESIDUAL[:3], ("Transpose", "a", "t", {"perm": [0, 1, 3, 2]}), ("Add", "c t", "d"), RESIDUAL[4]]
    assert planned(nodes, IMAGE, KERNEL, Mode()) == {}


@pytest.mark.parametrize(("device", "expected"), [("pocl", {"b": "a"}), ("nvidia", {})])
def test_normalised_rows_are_written_over_where_one_work_item_owns_them(device: str, expected: dict[str, str]) -> None:
    nodes: list[Node] = [
        ("Conv", "x w", "a", PAD),
        ("Reshape", "a groups", "g"),
        ("InstanceNormalization", "g s t", "n"),
        ("Reshape", "n whole", "m"),
        ("Sigmoid", "m", "q"),
        ("Mul", "m q", "b"),
        ("Conv", "b w", "y", PAD),
    ]
    sizes = {"groups": np.array([1, 2, -1], np.int64), "whole": np.array([1, 8, 12, 12], np.int64)}
    constants = {**KERNEL, **sizes, "s": weights(2), "t": weights(2)}
    assert planned(nodes, IMAGE, constants, Mode(device=device)) == expected


@pytest.mark.parametrize("device", ["pocl", "nvidia"])
def test_an_element_may_be_read_twice(device: str) -> None:
    nodes: list[Node] = [*RESIDUAL[:3], ("Mul", "c a", "p"), ("Add", "p a", "d"), RESIDUAL[4]]
    assert planned(nodes, IMAGE, KERNEL, Mode(device=device)) == {"d": "a"}


def test_a_chain_writes_over_the_addend_of_its_rows() -> None:
    nodes: list[Node] = [*RESIDUAL[:4], ("Conv", "d u", "e"), ("Conv", "e w", "f", PAD), ("Add", "f d", "y")]
    constants = {**KERNEL, "u": weights(8, 8, 1, 1)}
    assert planned(nodes, {"x": normal(1, 8, 40, 40)}, constants, Mode()) == {"d": "a"}


# --- every access of every work-item ---


def trouble(plan: Plan, source: Source, device: MemoryModel, pairs: dict[str, str]) -> str | None:
    """An element that is read by a work-item that does not write it, or after it was written."""
    launch = TracedLaunch.of(source, plan.tensors, device.wave)
    parameters = {a.tensor: name for name, a in zip(launch.parameters, source.arguments, strict=True)}
    accesses = trace(launch, Window(np.arange(launch.groups)), device, merge=False)
    for new, old in pairs.items():
        begins: dict[int, tuple[int, int]] = {}
        for access in (a for a in accesses if a.write and a.space.name == parameters[new]):
            for element, item, time in _elements(access):
                if element in begins and begins[element][0] != item:
                    return f"{new}[{element}] is written twice"
                begins[element] = min(begins.get(element, (item, time)), (item, time))
        for access in (a for a in accesses if not a.write and a.space.name == parameters[old]):
            for element, item, time in _elements(access):
                # vector loads may reach over what other work-items write; they drop those lanes
                if access.width == 1 and (element not in begins or begins[element] < (item, time)):
                    return (
                        f"{old}[{element}] is read by {item} at {time}, and {new} is written at {begins.get(element)}"
                    )
    return None


def _elements(access):  # type: ignore[no-untyped-def]
    place, mask = access.place[0], access.mask.astype(bool)
    items = np.broadcast_to(np.arange(place.shape[0]).reshape((-1,) + (1,) * (place.ndim - 1)), place.shape)
    times = np.broadcast_to(access.time, place.shape)
    for first, item, time in zip(place[mask].tolist(), items[mask].tolist(), times[mask].tolist(), strict=True):
        for lane in range(access.width):
            yield first + lane, item, time


def test_no_work_item_reads_what_was_written_over(fresh_seeds: bool, examples: int, all_cases: bool) -> None:
    simulated = MemoryModel.of(load_rules().devices["adreno_740"])

    @drawing(examples or (60 if all_cases else 15), fresh_seeds)
    @given(models(), st.sampled_from(["pocl", "nvidia"]))
    def test(drawn: Model, device: str) -> None:
        plan = plan_of(drawn.proto, Mode(device=device))
        for launch, source in zip(plan.launches, plan.sources, strict=True):
            if launch.in_place and not launch.steps:  # functions that a kernel calls are not traced
                assert trouble(plan, source, simulated, launch.in_place) is None, source.text

    test()
