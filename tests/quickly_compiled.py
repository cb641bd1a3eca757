"""Most of what tests of plans and of their stages compute is compiled without optimizing, unless all cases run.

Optimizing takes PoCL longer than all else that the tests do. It does not change what a program computes: kernels are
compiled without options that would let it. That it has no error that the kernels meet is what one test in `SHARE`
sees, the same ones always, all tests of other folders, and all tests with `--all`.

PoCL links each kernel with the C library, which takes the linker five times as long as the kernel: the process that
loads the kernel has the library already. So `tests/linker/ld` leaves it out.

No user's GPU kernel is compiled by PoCL for a processor: tests run them there to see that they compute what they
should, and no test has them optimized without `--all`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from smartmem_rules.plan.artefact import Source
from smartmem_rules.runtime.devices import Device
from smartmem_rules.runtime.programs import compiling
from smartmem_rules.runtime.programs.excerpts import PRELUDE_END

UNOPTIMIZED = "-cl-opt-disable"
MARKS = ("__local", "image2d_t")
"""What no kernel for processors has behind the prelude."""
FOLDERS = (
    "checking", "cli", "decoding", "emit", "examples", "explanation", "fuzzing", "graph", "kept_plans", "operators",
    "plan", "probes", "quantization", "report", "room", "runtime/test_checks.py", "runtime/test_unended_loops.py",
    "schema", "simplification", "torch_backend", "tuning",
)  # fmt: skip
"""Of tests that ask what is computed, and wait for PoCL's optimizer most of the time."""
SHARE = 8
TESTS = Path(__file__).parent
LINKER = TESTS / "linker"
"""Where clang and gcc look for the linker first."""
_as_users: ContextVar[bool] = ContextVar("as_users", default=True)
"""How the programs are compiled that the test that runs makes."""


def is_for_gpus(source: Source) -> bool:
    """Whether a kernel uses local memory or images, which are those of GPUs."""
    _, _, own = source.text.rpartition(PRELUDE_END)
    return any(mark in own for mark in MARKS)


def compiles_as_users(item: pytest.Item) -> bool:
    """Whether a test's programs for processors are compiled as users' are."""
    if not lies_in(item, FOLDERS) or item.get_closest_marker("optimized") is not None:
        return True
    # another digest than that of the cases of which a sample runs: of one case in eight, all would be optimized
    return hashlib.sha256(item.nodeid.encode()).digest()[0] % SHARE == 0


def lies_in(item: pytest.Item, folders: Iterable[str]) -> bool:
    """Whether a test lies in one of some folders of tests."""
    return any(item.path.is_relative_to(TESTS / folder) for folder in folders)


def choose(as_users: bool) -> None:
    """Say how the programs are compiled that are made from now on."""
    _as_users.set(as_users)


def compile_quickly() -> None:
    """From now on, in this process and those that it starts, compile programs as the tests that make them ask for it.

    How they are linked is one for all tests.
    """
    options_of = compiling.options_of

    def options(source: Source, device: Device) -> tuple[str, ...]:
        own = options_of(source, device)
        as_users = _as_users.get() and not is_for_gpus(source)
        return own if as_users or UNOPTIMIZED in own else (*own, UNOPTIMIZED)

    compiling.options_of = options
    os.environ["COMPILER_PATH"] = os.pathsep.join(filter(None, (str(LINKER), os.environ.get("COMPILER_PATH"))))
    compiling.Programs.__init__ = _as_made(compiling.Programs.__init__)  # type: ignore[method-assign]
    compiling.Programs.kernel = _as_made(compiling.Programs.kernel)  # type: ignore[method-assign]


def _as_made(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of `Programs` to which they are what they were when they were made: tests share plans."""

    @wraps(method)
    def call(self: compiling.Programs, *given: Any, **named: Any) -> Any:
        token = _as_users.set(vars(self).setdefault("as_users", _as_users.get()))
        try:
            return method(self, *given, **named)
        finally:
            _as_users.reset(token)

    return call
