"""What is measured of a CPU: that it can be, how it is kept, and how plans follow it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from smartmem_rules.language.blocks.schedule import Panel
from smartmem_rules.plan.schedule.contraction.sizing import register_step
from smartmem_rules.plan.schedule.scheduler import on_device
from smartmem_rules.runtime.calibration.calibrate import calibrate
from smartmem_rules.runtime.calibration.record import Bandwidth, Calibration, CalibrationError, TileRate
from smartmem_rules.runtime.calibration.store import SWITCH, forget, keep, known, path_of
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.target import target_of
from tests.plan.programs import rules

LATENCY, LOAD, OVERHEAD = 6.0, 1.5, 0.4


def made(rates: dict[int, float]) -> Calibration:
    """A calibration whose tiles take exactly what the model of a step says, at so many products in a nanosecond."""
    tiles = []
    for lanes, rate in rates.items():
        for rows, vectors in ((1, 1), (1, 2), (2, 1), (4, 3), (6, 2), (8, 1), (8, 3), (14, 2)):
            step = max(LATENCY, rows * vectors, LOAD * (rows + vectors)) + OVERHEAD
            gflops = 2 * lanes * rows * vectors * rate / step
            tiles.append(TileRate(lanes=lanes, rows=rows, columns=vectors * lanes, gflops=gflops))
    reads = tuple(Bandwidth(cores=n, bytes=b, gbytes_per_s=100 * n / i) for n in (1, 2) for i, b in ((1, 1), (4, 64)))
    return Calibration(
        device="a", driver="b", profile="pocl", tiles=tiles, bandwidths=reads, launch_us=2.0, barrier_ns=20.0,
        load_ns=0.5, prefetch_ns=0.1, image_gbytes_per_s=5.0, exponential_ns=0.25, seconds=1.0, load_average=0.5,
    )  # fmt: skip


def test_the_costs_of_a_step_are_found_again() -> None:
    found = made({8: 8.0})
    best = max(found.tiles, key=lambda tile: tile.gflops)
    # products at the best rate take a little longer than a product, because that rate holds the overhead of its step
    longer = 8.0 * 16 / best.gflops
    latency, load = found.step_costs(OVERHEAD / longer)
    assert latency == pytest.approx(LATENCY / longer, abs=0.5)
    assert load == pytest.approx(LOAD / longer, abs=0.05)


@pytest.mark.parametrize(("rates", "lanes"), [({8: 8.0, 16: 8.0}, 16), ({8: 8.0, 16: 4.0}, 8), ({4: 8.0, 8: 8.0}, 8)])
def test_registers_are_as_wide_as_pays(rates: dict[int, float], lanes: int) -> None:
    """Registers of 512 bits that are two passes of 256 would only waste columns."""
    assert made(rates).lanes == lanes


def test_plans_follow_what_was_measured() -> None:
    found, pocl = made({8: 8.0, 16: 8.0}), rules().devices["pocl"]
    profile = found.profile_of(replace(pocl, compute=replace(pocl.compute, units=4)), OVERHEAD)
    compute, memory = profile.compute, profile.memory
    assert (compute.lanes, compute.register_count, compute.launch_us) == (16, 32, 2.0)
    assert compute.peak_gflops == pytest.approx(4 * found.core_gflops)
    assert (memory.unit_bandwidth, memory.global_bandwidth, memory.texture_bandwidth) == (25.0, 50.0, 5.0)
    (panel,) = (s for s in on_device(tuple(rules().schedules.values()), profile) if isinstance(s, Panel))
    assert (panel.product_latency, panel.load_cost) == found.step_costs(OVERHEAD)
    assert register_step(panel, 14, 32) >= 28


def test_a_calibration_is_kept_for_its_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device, found = choose(), made({8: 8.0})
    as_in_rules = target_of("pocl", rules()).profile
    monkeypatch.setenv(SWITCH, str(tmp_path))
    assert known(device) is None
    keep(device, found)
    assert known(device) == replace(found, tiles=tuple(found.tiles))
    assert known(replace(device, driver="another")) is None
    if device.kind == "cpu":
        assert target_of("pocl", rules()).profile.compute.launch_us == found.launch_us
    monkeypatch.setenv(SWITCH, "off")
    assert known(device) is None
    assert target_of("pocl", rules()).profile == as_in_rules
    with pytest.raises(CalibrationError, match="switched off"):
        keep(device, found)
    monkeypatch.setenv(SWITCH, str(tmp_path))
    assert forget(device)
    assert not forget(device)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 0}', '{"format": 1, "tiles": [], "bandwidths": []}'])
def test_a_damaged_file_says_what_to_do(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, str(tmp_path))
    path = path_of(choose())
    assert path is not None
    path.write_text(text)
    with pytest.raises(CalibrationError, match="smartmem calibrate"):
        known(choose())


def test_a_cpu_can_be_measured() -> None:
    device = choose()
    if device.kind != "cpu":
        with pytest.raises(CalibrationError, match="only CPUs"):
            calibrate(device, rules(), 0.1)
        return
    found = calibrate(device, rules(), 0.1)
    assert {one.cores for one in found.bandwidths} == {1, device.compute_units}
    figures = (found.launch_us, found.barrier_ns, found.load_ns, found.exponential_ns, found.core_gflops)
    assert all(figure > 0 for figure in figures)
    assert Calibration.of_data(json.loads(json.dumps(found.data()))) == found
    profile = found.profile_of(target_of("pocl", rules()).profile, OVERHEAD)
    assert profile.compute.peak_gflops == pytest.approx(found.core_gflops * profile.compute.units)
