"""Register tiles of 4, 8 and 16 lanes: the same results, whatever shapes leave over; wide registers where they are."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from smartmem_rules.environment import PROCESSOR
from smartmem_rules.plan.kernel.model import Kernel
from smartmem_rules.plan.schedule.records import PanelSchedule
from smartmem_rules.runtime import target
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.target import target_of
from tests.plan.models import Array, Node, model, normal, whole
from tests.plan.programs import rules
from tests.plan.running import Mode, prepare

pytestmark = pytest.mark.sampled(40)

WIDTHS = (4, 8, 16)
ATTENTION: list[Node] = [
    ("Transpose", "k", "t", {"perm": [0, 2, 1]}),
    ("MatMul", "q t", "s"),
    ("Softmax", "s", "a", {"axis": -1}),
    ("MatMul", "a v", "y"),
]
Case = tuple[list[Node], dict[str, Array], dict[str, Array]]


def _product(draw: random.Random, dtype: str = "float32") -> Case:
    """With a residual and an activation, over a constant."""
    m, k, n = draw.randint(1, 70), draw.randint(1, 60), draw.randint(1, 110)
    nodes: list[Node] = [("MatMul", "x w", "p"), ("Add", "p b", "s"), ("Relu", "s", "y")]
    feeds, constants = {"x": normal(m, k, dtype=dtype)}, {"w": normal(k, n, dtype=dtype), "b": normal(n, dtype=dtype)}
    return nodes, feeds, constants


def _double(draw: random.Random) -> Case:
    return _product(draw, "float64")


def _two_inputs(draw: random.Random) -> Case:
    """Both factors packed in the kernel."""
    batch, m, k, n = draw.randint(1, 4), draw.randint(1, 40), draw.randint(1, 40), draw.randint(1, 70)
    nodes: list[Node] = [("MatMul", "x w", "y")]
    return nodes, {"x": normal(batch, m, k), "w": normal(batch, k, n, seed=1)}, {}


def _computed_right(draw: random.Random) -> Case:
    """Few rows beside a factor that is computed where it is read, in vectors of all lanes."""
    m, k, n = draw.randint(1, 8), draw.randint(1, 40), 16 * draw.randint(1, 6)
    function = draw.choice(["Tanh", "Exp", "Sigmoid", "Erf", "Sign", "Sin", "Min", "Max"])
    computed: Node = (function, "w c", "h") if function in ("Min", "Max") else (function, "w", "h")
    feeds = {"x": normal(m, k), "w": normal(k, n, seed=1)}
    return [computed, ("MatMul", "x h", "y")], feeds, {"c": normal(seed=2)} if "c" in computed[1] else {}


def _rows(draw: random.Random) -> Case:
    """Finished rows that are reduced before they leave the cache."""
    m, k, n = draw.randint(2, 60), draw.randint(2, 40), draw.randint(2, 90)
    return [("MatMul", "x w", "p"), ("Softmax", "p", "y")], {"x": normal(m, k)}, {"w": normal(k, n, seed=1)}


def _attention(draw: random.Random) -> Case:
    heads, rows, keys, width = draw.randint(1, 4), draw.randint(2, 60), draw.randint(2, 60), draw.randint(3, 40)
    feeds = {"q": normal(heads, rows, width), "k": normal(heads, keys, width, seed=1)}
    return ATTENTION, {**feeds, "v": normal(heads, keys, draw.randint(3, 40), seed=2)}, {}


def _convolution(draw: random.Random) -> Case:
    """Filtered where the channels allow it."""
    channels, n, size, taps = draw.choice((3, 8, 12, 16, 32)), draw.randint(1, 50), draw.randint(4, 20), 3
    nodes: list[Node] = [("Conv", "x w", "c", {"pads": [1, 1, 1, 1]}), ("Relu", "c", "y")]
    return nodes, {"x": normal(1, channels, size, size)}, {"w": normal(n, channels, taps, taps, seed=1) / 10}


def _depthwise(draw: random.Random) -> Case:
    """Windows computed together in the rows of a product."""
    channels, n, size = draw.choice((8, 16, 24, 40)), draw.randint(4, 40), draw.randint(6, 15)
    nodes: list[Node] = [
        ("Conv", "x d", "c", {"pads": [1, 1, 1, 1], "group": channels}),
        ("Relu", "c", "r"),
        ("Conv", "r w", "y"),
    ]
    constants = {"d": normal(channels, 1, 3, 3), "w": normal(n, channels, 1, 1, seed=1)}
    return nodes, {"x": normal(1, channels, size, size)}, constants


def _integers(draw: random.Random) -> Case:
    m, k, n = draw.randint(1, 30), draw.randint(1, 40), draw.randint(1, 50)
    feeds = {"x": whole(m, k, dtype="int8"), "w": whole(k, n, dtype="int8", seed=1)}
    return [("MatMulInteger", "x w", "y")], feeds, {}


DRAWS = {
    draw.__name__.strip("_"): draw
    for draw in (
        _product, _double, _two_inputs, _computed_right, _rows, _attention, _convolution, _depthwise, _integers,
    )
}  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("width", WIDTHS)
def test_drawn_shapes(width: int, kind: str, dtype: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "_register_width", lambda profile, device: width)
    nodes, feeds, constants = DRAWS[kind](random.Random(f"{kind} {seed}"))
    proto = model(nodes, feeds, "y", constants)
    plan, executor = prepare(proto, Mode(dtype=dtype))
    executor.poison()
    (expected,) = ReferenceEvaluator(proto).run(None, feeds)
    kernels: list[Kernel] = [kernel for launch in plan.launches for kernel in launch.kernels]
    tiles = [kernel.schedule for kernel in kernels if isinstance(kernel.schedule, PanelSchedule)]
    assert all(tile.columns % width == 0 for tile in tiles)
    share = 1e-2 if dtype == "float16" else 2e-5
    np.testing.assert_allclose(
        executor.run(feeds)["y"], expected, rtol=0, atol=share * max(1.0, float(np.abs(expected).max()))
    )


COMPILE = """
from tests.plan.models import model, normal
from tests.plan.running import Mode, prepare
nodes, feeds = [("MatMul", "x w", "y")], {"x": normal(64, 64)}
_, executor = prepare(model(nodes, feeds, "y", {"w": normal(64, 96)}), Mode())
executor.run(feeds)  # PoCL compiles a kernel when it is enqueued
"""


def _machine_code(library: Path) -> list[str]:
    """The operands of the multiply-adds of a library."""
    text = subprocess.run(["objdump", "-d", str(library)], capture_output=True, text=True, check=True).stdout
    return [line for line in text.splitlines() if re.search(r"vfmadd|vmulps|vaddps", line)]


def _needs_wide_registers() -> None:
    device = choose()
    if "Portable Computing Language" not in device.platform or shutil.which("objdump") is None:
        pytest.skip("the machine code is that of PoCL, which objdump shows")
    if target_of("pocl", rules()).profile.compute.lanes < 16:
        pytest.skip("the processor has no registers of 512 bits")


@pytest.mark.exhaustive
def test_products_use_the_registers_that_are_asked_for(tmp_path: Path) -> None:
    """A machine with AVX-512 is made one with AVX2: its products are multiply-adds of 256 bits."""
    _needs_wide_registers()
    environment = {**os.environ, "POCL_CACHE_DIR": str(tmp_path), PROCESSOR.name: "x86-64-v3"}
    subprocess.run([sys.executable, "-c", COMPILE], check=True, capture_output=True, env=environment)
    found = [_machine_code(library) for library in tmp_path.rglob("*.so")]
    assert any(len(lines) >= 12 and all("ymm" in line for line in lines) for lines in found), found


def test_products_use_the_widest_registers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What PoCL keeps of a product are multiply-adds of 512 bits where the processor has them."""
    _needs_wide_registers()
    monkeypatch.setenv("POCL_CACHE_DIR", str(tmp_path))
    subprocess.run([sys.executable, "-c", COMPILE], check=True, capture_output=True)
    found = [_machine_code(library) for library in tmp_path.rglob("*.so")]
    assert any(len(lines) >= 12 and all("zmm" in line for line in lines) for lines in found), found
