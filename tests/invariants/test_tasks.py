"""Launches whose work-groups take tasks in order: schedules that could go wrong are refused before they run."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from smartmem_rules.invariants.tasks import check_tasks
from smartmem_rules.invariants.violation import InvariantError
from smartmem_rules.plan.artefact import Argument, Place, Source, Waiting
from smartmem_rules.plan.kernel.launch import Ordered, Single
from smartmem_rules.plan.kernel.model import Kernel, Layout, Stored
from smartmem_rules.plan.kernel.work_items import Grid, Note, TaskGraph, Wait
from smartmem_rules.plan.launch.megakernel import counters
from smartmem_rules.plan.launch.task_order import TaskOrder
from smartmem_rules.plan.launch.touched import Touched, waits_behind
from smartmem_rules.tensor.expr import TensorType

THREADS = 128
SIZE = 4096


@dataclass(frozen=True)
class Case:
    """A launch with all that the check takes."""

    launch: Ordered
    source: Source
    tensors: dict[str, Stored]
    placement: dict[str, Place]

    def check(self) -> None:
        check_tasks(self.launch, self.source, self.tensors, self.placement)

    def other_text(self, change: Callable[[str], str]) -> Case:
        text = change(self.source.text)
        assert text != self.source.text
        return replace(self, source=replace(self.source, text=text))


def tensor(name: str) -> Stored:
    layout = Layout("buffer", (0,))
    return Stored(
        name=name, type=TensorType("float32", (SIZE // 4,)), layout=layout, role="intermediate", storage="float32"
    )


def table(name: str, values: tuple[int, ...]) -> str:
    return f"__constant int smr_order_{name}[{max(1, len(values))}] = {{ {', '.join(map(str, values or (0,)))} }};"


def text_of(order: TaskOrder) -> str:
    """The lines of codegen/ordered_groups.cl that say what runs when."""
    tables = [table(name, getattr(order, name)) for name in ("first", "waits", "awaited")]
    cases = [f"        case {n}: part{n}(p{n}, item, group, smr_local); break;" for n in range(len(order.first) - 1)]
    return "\n".join([*tables, *cases, f"for (int place = 0; place < {order.counters}; ++place) {{}}"])


FETCHED = "copy(right_tiles, p1);"


def fetching(parameters: str, body: str) -> Callable[[str], str]:
    """The text with a function that runs before the tasks of the first step wait."""
    function = f"static void part0_ahead(\n    {parameters},\n    const int item) {{\n    {body}\n}}\n"
    call = "        case 0: part0_ahead(p0, p1, item, group, smr_local); break;\n"
    return lambda text: function + call + text


def drawn(draw: random.Random) -> Case:
    """Steps that read what steps before them wrote, some results in the memory of others."""
    steps = [Single(kernel=Kernel(name="k0", form="pointwise", reads=("t0",), writes=("t1",), operations=1))]
    for number in range(1, draw.randint(3, 12)):
        reads = tuple({f"t{number}", *(f"t{draw.randint(0, number)}" for _ in range(draw.randint(0, 2)))})
        kernel = Kernel(name=f"k{number}", form="pointwise", reads=reads, writes=(f"t{number + 1}",), operations=1)
        steps.append(Single(kernel=kernel))
    sized = tuple(replace(step, grid=Grid.of(draw.randint(1, 40) * THREADS, THREADS)) for step in steps)
    tensors = {f"t{n}": tensor(f"t{n}") for n in range(len(steps) + 1)}
    placement = {name: Place(draw.randint(0, 3), draw.randint(0, 3) * SIZE // 2) for name in tensors}
    touched = Touched(tensors, placement)
    waits: list[tuple[Wait, ...]] = []
    for number, step in enumerate(sized):
        waits.append(waits_behind(step, sized[:number], waits, touched))
    tasks = TaskGraph(state="k0@order", waits=tuple(waits), patience=1000)
    launch = Ordered(
        name="k0",
        steps=sized,
        tasks=tasks,
        group_items=THREADS,
        groups=4,
        grid=Grid.of(4 * THREADS, THREADS),
        note=Note("t1", 0),
    )
    order = TaskOrder.of(launch)
    source = Source(
        entry="smr_kernel",
        text=text_of(order),
        arguments=(Argument("k0@order", "write"), Argument("t1", "write")),
        global_size=(4 * THREADS,),
        local_size=(THREADS,),
        waiting=Waiting(noted=1, element=SIZE // 4, steps=tuple(step.name for step in sized)),
    )
    return Case(launch, source, tensors | counters([launch]), placement)


def faults(case: Case, draw: random.Random) -> Iterator[tuple[str, Case]]:
    """The same launch with one fault."""
    order = TaskOrder.of(case.launch)
    steps, waits = len(case.launch.steps), len(order.awaited)

    def ordered(changed: TaskOrder) -> Case:
        return replace(case, source=replace(case.source, text=text_of(changed)))

    # none of the waits follows from others: each one that is left out leaves two steps at once
    for place in range(waits):
        left_out = order.awaited[:place] + order.awaited[place + 1 :]
        begins = tuple(first - (first > place) for first in order.waits)
        yield "left out", ordered(replace(order, awaited=left_out, waits=begins))
    place = draw.randrange(waits)
    own = next(n for n in range(steps) if order.waits[n] <= place < order.waits[n + 1])
    later = draw.randint(own, steps - 1)
    yield "later", ordered(replace(order, awaited=(*order.awaited[:place], later, *order.awaited[place + 1 :])))
    moved = draw.randrange(1, steps + 1)
    more = tuple(first + (n == moved) for n, first in enumerate(order.first))
    yield "one task more", ordered(replace(order, first=more))
    yield "no waits", ordered(replace(order, awaited=(), waits=(0,) * (steps + 1)))
    yield "unknown step", ordered(replace(order, awaited=(*order.awaited[:-1], steps)))
    yield "a step twice", case.other_text(lambda text: text.replace(f"case {steps - 1}:", f"case {steps - 2}:"))
    yield "no last step", case.other_text(lambda text: re.sub(rf" *case {steps - 1}:.*\n", "", text))
    yield "counter kept", case.other_text(lambda text: text.replace(f"< {order.counters};", f"< {order.counters - 1};"))
    state = case.tensors["k0@order"]
    assert state.packed is not None
    few = replace(state, packed=np.zeros(16 * (steps + 2), np.int32))
    yield "too few counters", replace(case, tensors=case.tensors | {"k0@order": few})
    ones = replace(state, packed=np.ones_like(state.packed))
    yield "counters begin at one", replace(case, tensors=case.tensors | {"k0@order": ones})
    tasks = replace(case.launch.tasks, patience=0)
    yield "no patience", replace(case, launch=replace(case.launch, tasks=tasks))
    step = replace(case.launch.steps[-1], grid=Grid.of(64, 64))
    yield "small group", replace(case, launch=replace(case.launch, steps=(*case.launch.steps[:-1], step)))
    yield "no note", replace(case, source=replace(case.source, waiting=None))
    assert case.source.waiting is not None
    inside = replace(case.source.waiting, element=draw.randrange(SIZE // 4))
    yield "a note in the elements", replace(case, source=replace(case.source, waiting=inside))


CONSTANT, WRITTEN = "__global const float* restrict p1 /* of [4, 4] */", "__global const float* p0 /* of [4, 4] */"


def test_what_no_task_writes_may_be_read_before_the_wait() -> None:
    case = drawn(random.Random(2))
    case.other_text(fetching(f"{WRITTEN},\n    {CONSTANT}", FETCHED)).check()


@pytest.mark.parametrize(
    ("parameters", "body"),
    [
        pytest.param(f"{WRITTEN},\n    {CONSTANT}", f"{FETCHED} copy(left_tiles, p0);", id="reads what others write"),
        pytest.param("__global float* restrict p1 /* of [4, 4] */", FETCHED, id="what it may write itself"),
        pytest.param("__global const float* p1 /* of [4, 4] */", FETCHED, id="not constant"),
    ],
)
def test_what_others_write_is_not_read_before_the_wait(parameters: str, body: str) -> None:
    case = drawn(random.Random(2)).other_text(fetching(parameters, body))
    with pytest.raises(InvariantError, match=r"part0_ahead uses p\d before its task waits"):
        case.check()


def test_a_function_that_runs_before_the_wait_has_a_text() -> None:
    case = drawn(random.Random(2)).other_text(lambda text: "        case 0: part0_ahead(p0);\n" + text)
    with pytest.raises(InvariantError, match="has no function part0_ahead"):
        case.check()


def test_faults_in_schedules_are_refused(request: pytest.FixtureRequest) -> None:
    draw = random.Random(1)
    wanted = 20000 if request.config.getoption("--all") else 2000
    found: dict[str, int] = {}
    while sum(found.values()) < wanted:
        case = drawn(draw)
        case.check()
        for fault, wrong in faults(case, draw):
            found[fault] = found.get(fault, 0) + 1
            with pytest.raises(InvariantError):
                wrong.check()
    assert len(found) == 14
