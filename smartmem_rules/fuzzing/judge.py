"""What becomes of a case: planned, run and compared with the reference."""

from __future__ import annotations

import re
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import smartmem_rules as sm
from smartmem_rules.environment import COMPUTE_UNITS, EMULATED_UNITS, TUNINGS
from smartmem_rules.errors import SmartmemError
from smartmem_rules.fuzzing import drawn_weights
from smartmem_rules.fuzzing.case import SELF, Array, Case, Mode
from smartmem_rules.fuzzing.drawn_sizes import keep_sizes
from smartmem_rules.fuzzing.expected.courses import longest_loop
from smartmem_rules.fuzzing.expected.differences import differences
from smartmem_rules.fuzzing.expected.node_runner import NoReference
from smartmem_rules.fuzzing.expected.outputs import MORE_RUNS, Reference
from smartmem_rules.fuzzing.requests import VerdictData
from smartmem_rules.fuzzing.systems import BrokenModel, run_by
from smartmem_rules.graph.run_number import RUN_NUMBER
from smartmem_rules.limits import Limits
from smartmem_rules.optimized import OptimizedPlan
from smartmem_rules.records import dataclass
from smartmem_rules.runtime.contexts.memory import RunError
from smartmem_rules.runtime.contexts.outputs import UnendedLoopError
from smartmem_rules.runtime.devices import DeviceError
from smartmem_rules.runtime.programs.compiling import BuildError
from smartmem_rules.specialized import SpecializedModel

RIGHT, REFUSED, NO_REFERENCE = "right", "refused", "no reference"
WRONG, ERROR, CRASH, HANG = "wrong", "error", "crash", "hang"
FAILURES = (WRONG, ERROR, CRASH, HANG)


@dataclass(frozen=True)
class Verdict:
    """What became of a case.

    Attributes:
        kind: `right`, `refused` (a clear error of ours), `no reference`, or a failure: `wrong`, `error` (anything else
            raised), `crash` (the process ended), `hang`.
        detail: one line for the reader, several for an error.
        seconds: processor time.
    """

    kind: str
    detail: str = ""
    seconds: float = 0.0

    def data(self) -> VerdictData:
        """JSON data."""
        return {"kind": self.kind, "detail": self.detail, "seconds": self.seconds}

    @property
    def failed(self) -> bool:
        return self.kind in FAILURES

    def same_failure(self, other: Verdict) -> bool:
        """Whether two failures look like the same one, for the reduction of a case."""
        if self.kind != other.kind:
            return False
        if self.kind == WRONG:
            return bool(self._wrongness() & other._wrongness())
        return self.kind != ERROR or self.detail.splitlines()[-1][:40] == other.detail.splitlines()[-1][:40]

    def _wrongness(self) -> set[str]:
        """Of which kinds the wrong outputs are: a reduction shall not slip from one fault to another."""
        kinds = set()
        for line in re.split(r"; (?=\S+: )", self.detail):
            if "shape (" in line or "element type" in line:
                kinds.add("type")
            else:
                kinds.add("not finite" if re.search(r"\b(nan|inf)\b", line) else "value")
        return kinds


def judge(case: Case) -> Verdict:
    """Plan a case, run it and compare."""
    begin = time.process_time()

    def verdict(kind: str, detail: str = "") -> Verdict:
        return Verdict(kind, detail, time.process_time() - begin)

    try:
        results = _run(case)
    except UnendedLoopError as unended:
        try:
            ended = longest_loop(case.model, case.feeds) <= case.mode.steps
        except NoReference as reason:
            return verdict(NO_REFERENCE, str(reason))
        return verdict(WRONG if ended else RIGHT, str(unended))
    # a kernel that is none or accesses what it may not; no model; without a device nothing would be judged at all
    except (BuildError, RunError, BrokenModel, DeviceError):
        return verdict(ERROR, traceback.format_exc(limit=-6))
    except SmartmemError as refusal:
        return verdict(REFUSED, str(refusal))
    except Exception:  # whatever is raised but our own errors is what is looked for
        return verdict(ERROR, traceback.format_exc(limit=-6))
    try:
        reference = Reference(case.model, case.feeds, case.mode.dtype)
        wrong = differences(results, reference.expected())
        if wrong:  # a closer look at the conditioning, before anyone is accused
            wrong = differences(results, reference.expected(seed=1, runs=MORE_RUNS))
    except NoReference as reason:
        return verdict(NO_REFERENCE, str(reason))
    if wrong:
        return verdict(WRONG, "; ".join(f"{name}: {line}" for name, line in wrong.items()))
    return verdict(RIGHT)


def planned(case: Case, **more: Any) -> OptimizedPlan:
    """The plan of a case by our own engine, as its mode says.

    Args:
        more: further arguments of `smartmem_rules.optimize`.

    Raises:
        SmartmemError: there is no plan.
    """
    mode = case.mode
    options: dict[str, Any] = {"dims": dict(mode.dims)} if mode.dims else {}
    cores = str(mode.cores or "")
    with EMULATED_UNITS.set_to(mode.units), COMPUTE_UNITS.set_to(cores), _sizes(case), _weights(mode) as (level, rules):
        return sm.optimize(
            case.model,
            rules=rules,
            device=mode.device,
            level=level,
            memory=mode.memory,
            dtype=mode.dtype,
            debug=mode.debug,
            limits=Limits(steps=mode.steps),
            **options,
            **more,
        )


def _run(case: Case) -> dict[str, Array]:
    if case.mode.system != SELF:
        return run_by(case.mode.system, case.model, case.feeds)
    plan, left = planned(case), case.feeds
    if isinstance(plan, SpecializedModel):
        plan, left = plan.plan_for(case.feeds)
    plan.prepare().poison()
    # the number of the run, which operators that draw numbers read, is no input of the model
    feeds = {name: left[name] for name in plan.plan.inputs if name != RUN_NUMBER}
    return {name: np.asarray(value) for name, value in plan.run(feeds).items()}


@contextmanager
def _sizes(case: Case) -> Iterator[None]:
    """Have the kernels of the case planned with drawn sizes, if its mode says so; at one extent, as tuning does."""
    if not case.mode.sizes or case.mode.dims:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tunings.sqlite"
        keep_sizes(case, path)
        with TUNINGS.set_to(str(path)):
            yield


@contextmanager
def _weights(mode: Mode) -> Iterator[tuple[str, list[Path]]]:
    """The level and the rule files of a mode, of which one has other weights for layouts if the mode says so."""
    if not mode.weights or mode.level not in drawn_weights.LEVELS:
        yield mode.level, []
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.smr"
        drawn_weights.write_weights(path, mode.level, mode.weights)
        yield drawn_weights.LEVEL, [path]
