"""Which tests have their programs optimized, and that tests may share a plan."""

from __future__ import annotations

import os
import subprocess
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from smartmem_rules import optimize
from tests.plan.models import model, normal
from tests.quickly_compiled import LINKER, SHARE, TESTS, choose, compiles_as_users

pytest.importorskip("pyopencl")


def item(path: str, name: str, *markers: str) -> Any:
    """What is asked of a test."""
    marked = lambda marker: marker if marker in markers else None  # noqa: E731
    return SimpleNamespace(path=TESTS / path, nodeid=f"tests/{path}::{name}", get_closest_marker=marked)


def test_one_test_in_some_of_plans_is_compiled_as_users_are() -> None:
    names = [f"test_{number}" for number in range(1000)]
    count = sum(compiles_as_users(item("plan/test_some.py", name)) for name in names)
    assert 0.8 < SHARE * count / len(names) < 1.2
    sampled = [name for name in names if zlib.crc32(f"tests/plan/test_some.py::{name}".encode()) % SHARE == 0]
    assert 0 < sum(compiles_as_users(item("plan/test_some.py", name)) for name in sampled) < len(sampled) / 2
    assert all(compiles_as_users(item("plan/test_some.py", name, "optimized")) for name in names)
    assert all(compiles_as_users(item("numerics/test_some.py", name)) for name in names)


@pytest.mark.parametrize("first", [False, True])
def test_a_plan_that_tests_share_stays_as_it_was_made(first: bool) -> None:
    choose(first)
    plan = optimize(model([("Relu", "x", "y")], {"x": normal(3, 4)}, "y"))
    executor = plan.prepare()
    choose(not first)
    with executor.taken(), executor.taken():  # the second one makes kernels anew
        pass
    assert (plan.run({"x": normal(3, 4)})["y"] >= 0).all()


@pytest.mark.parametrize(
    ("target", "left"),
    [
        ("/cache/pocl/tempfile_a b.so", ["-shared", "-o", "/cache/pocl/tempfile_a b.so", "-L/lib", "a.o", "-lgcc"]),
        ("/build/program.so", ["-shared", "-o", "/build/program.so", "-L/lib", "a.o", "-lgcc", "-lgcc_s", "-lc"]),
    ],
)
def test_only_kernels_are_linked_without_the_library_that_processes_have(
    tmp_path: Path, target: str, left: list[str]
) -> None:
    linker = tmp_path / "ld"
    linker.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    linker.chmod(0o755)
    given = ["-shared", "-o", target, "-L/lib", "a.o", "-lgcc", "-lgcc_s", "-lc"]
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    ran = subprocess.run([LINKER / "ld", *given], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.split("\n") == [*left, ""]
