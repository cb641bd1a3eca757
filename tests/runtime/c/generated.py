"""Generated models through the C runtime and through Python's executor: the same plan file, the same bytes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from smartmem_rules import OptimizedPlan, load
from smartmem_rules.environment import ONE_LAUNCH
from smartmem_rules.errors import SmartmemError
from smartmem_rules.fuzzing.case import Case
from smartmem_rules.fuzzing.judge import planned
from smartmem_rules.fuzzing.sources.by_name import SOURCES
from smartmem_rules.graph.run_number import RUN_NUMBER
from smartmem_rules.runtime.feeds import trial_extents
from smartmem_rules.runtime.selftest.report import ReplacedKernelWarning, WrongKernelError
from smartmem_rules.specialized import SpecializedModel
from tests.runtime.c.library import Array, CPlan, CSession, open_plan

Feeds = Mapping[str, Array]
ALIGNMENT = 128
"""Of the application's memory for intermediates."""
ASKED = 4
"""One plan in so many tests itself."""
IN_ORDER = 3
"""One plan in so many is NVIDIA's in half precision, whose kernels share a launch where that is modelled faster."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """What became of a case.

    Attributes:
        kind: `equal`; `refused`: no plan is made; `differs`; `alarm`: a plan's test of itself fails in Python.
        detail: why there is no plan, or what differs.
        waits: there are launches whose work-groups wait for each other.
        asked: distinct kernels that answered probes in C.
    """

    kind: str
    detail: str = ""
    waits: bool = False
    asked: int = 0


def case_in_c(source: str, seed: int) -> Case:
    """The case of a generator, planned as the seed says; debug builds are an executor's own and no other plan."""
    case = SOURCES[source](seed)
    mode = replace(case.mode, debug=False)
    if seed % IN_ORDER == 0:
        mode = replace(mode, device="nvidia", memory="auto", dtype="float16", units="8.0", level="smartmem")
    return replace(case, mode=mode)


def compare(case: Case, folder: Path, asked: bool) -> Compared:
    """Plan a case, write the plan, and run the file in Python and in C.

    Args:
        folder: for the file.
        asked: the plan tests itself; a false alarm in C is an error there.

    Raises:
        CError: the C runtime refuses the plan or a run.
    """
    try:
        plan = _plan_of(case, asked)
        path = folder / "a.plan"
        plan.save(path)
        python = load(path)
        feeds = [*_inputs(python, case)]
        expected = [python.run(one) for one in feeds]
    except (WrongKernelError, ReplacedKernelWarning) as alarm:
        return Compared(kind="alarm", detail=str(alarm))
    except SmartmemError as refusal:
        return Compared(kind="refused", detail=str(refusal).splitlines()[0])
    with open_plan(path, self_test=1 if asked else -1) as opened:
        differs = _different(opened, feeds, expected)
    forms = {launch.form for launch in python.kernels}
    return Compared(
        kind="differs" if differs else "equal",
        detail=differs,
        waits="ordered" in forms,
        asked=len(python.plan.probes),
    )


def _plan_of(case: Case, asked: bool) -> OptimizedPlan:
    with ONE_LAUNCH.set_to("on"), warnings.catch_warnings():
        warnings.simplefilter("error", ReplacedKernelWarning)
        plan = planned(case, probes=asked)
        if not isinstance(plan, SpecializedModel):
            return plan
        plan.run(case.feeds)  # its inputs decide the plan
        return plan.last


def _inputs(plan: OptimizedPlan, case: Case) -> Iterator[dict[str, Array]]:
    """The case's inputs, others, at other extents where dimensions are open, and the case's again."""
    own = {name: np.asarray(case.feeds[name]) for name in plan.plan.inputs if name != RUN_NUMBER}
    others = [plan.random_feeds(seed, dims) for seed, dims in enumerate(trial_extents(plan.plan.dimensions))]
    for number, feeds in enumerate([own, *others, own]):
        yield {**feeds, RUN_NUMBER: np.asarray(number, np.int64)} if RUN_NUMBER in plan.plan.inputs else feeds


def _different(opened: CPlan, feeds: list[dict[str, Array]], expected: list[dict[str, Any]]) -> str:
    """What differs in one session, or in another one over memory that holds NaN; empty: nothing."""
    memory = np.full(opened.info.intermediate_bytes + ALIGNMENT, 0xFF, np.uint8)
    at = -memory.ctypes.data % ALIGNMENT
    with opened.session() as first, opened.session(memory[at:]) as second:
        for number, (inputs, wanted) in enumerate(zip(feeds, expected, strict=True)):
            for session in (first, second):
                line = _difference(session, inputs, wanted)
                if line:
                    return f"run {number}{' in memory of NaN' if session is second else ''}: {line}"
    return ""


def _difference(session: CSession, inputs: Feeds, wanted: Mapping[str, Any]) -> str:
    found = session.run(inputs)
    if list(found) != list(wanted):
        return f"outputs {list(found)}, not {list(wanted)}"
    for name, value in wanted.items():
        right, ours = np.asarray(value), found[name]
        if (ours.shape, ours.dtype) != (right.shape, right.dtype):
            return f"{name} is {ours.dtype}{list(ours.shape)}, not {right.dtype}{list(right.shape)}"
        places = np.flatnonzero((_elements(ours) != _elements(right)).any(axis=1))
        if places.size:
            one = int(places[0])
            values = f"{ours.flat[one]}, not {right.flat[one]}"
            return f"{places.size} of {right.size} elements of {name} differ, [{one}] is {values}"
    return ""


def _elements(array: Array) -> Array:
    """The bytes of each element."""
    return np.frombuffer(array.tobytes(), np.uint8).reshape(array.size, array.dtype.itemsize)


__all__ = ["ASKED", "Compared", "case_in_c", "compare"]
