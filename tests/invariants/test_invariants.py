"""Each kind of damage to a stage's result is found, and named with its kernel and tensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from smartmem_rules.api import Clock
from smartmem_rules.invariants import InvariantError, verify_kernels, verify_plan
from smartmem_rules.invariants.launches import check_launches
from smartmem_rules.pipeline import Request, make_plan
from smartmem_rules.plan import build
from smartmem_rules.plan.artefact import Argument, Place, Plan, Source
from smartmem_rules.plan.fusion.equations.program import Program, flatten
from smartmem_rules.plan.kernel.launch import Beside, Chain, Single, Wave
from smartmem_rules.plan.kernel.model import Kernel, Layout, Store
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.expr import Read, Reduce
from smartmem_rules.tensor.index import Index, variable
from tests.plan.models import Node, model, normal
from tests.runtime.plans import change_source


def made(nodes: list[Node], level: str = "none", memory: str = "buffer", **shapes: tuple[int, ...]) -> Plan:
    feeds = {name: normal(*shape) for name, shape in shapes.items()}
    proto = model(nodes, feeds, nodes[-1][2])
    return make_plan(Request(proto, (), "pocl", level, "float32", memory, (), {}), Clock())[0]


@pytest.fixture
def plan() -> Plan:
    """Four kernels one after the other: x -> a -> b -> c -> y, of 6 x 8 elements."""
    nodes: list[Node] = [("Tanh", "x", "a"), ("Sin", "a", "b"), ("Softmax", "b", "c"), ("Neg", "c", "y")]
    return made(nodes, x=(6, 8))


def store(plan: Plan, number: int, change: Callable[[Store], Store]) -> None:
    """Change what one of a plan's launches stores."""
    change_kernel(plan, number, lambda kernel: replace(kernel, stores=tuple(map(change, kernel.stores))))


def change_kernel(plan: Plan, number: int, change: Callable[[Kernel], Kernel]) -> None:
    """Change the kernel of one of a plan's launches."""
    enqueue = plan.enqueues[number]
    launch = enqueue.launch.each(lambda one: replace(one, kernel=change(one.kernel)))
    plan.enqueues[number] = replace(enqueue, launch=launch)


def check(plan: Plan) -> None:
    verify_kernels(plan.launches, plan.tensors, plan.outputs, thorough=True)
    verify_plan(plan, thorough=True)


def test_sound_plans_pass(plan: Plan) -> None:
    check(plan)
    assert check_launches(plan) == len(plan.launches)


# --- order ---


def test_a_read_before_the_write(plan: Plan) -> None:
    plan.enqueues[1], plan.enqueues[2] = plan.enqueues[2], plan.enqueues[1]
    with pytest.raises(InvariantError, match=r"fusion.*'b'.*before it is written"):
        check(plan)


def test_what_nothing_computes_is_no_input(monkeypatch: pytest.MonkeyPatch) -> None:
    def lossy(*given: Any, **more: Any) -> Program:
        program = flatten(*given, **more)
        return replace(program, definitions=[one for one in program.definitions if one.tensor != "a"])

    monkeypatch.setattr(build, "flatten", lossy)
    with pytest.raises(InvariantError, match=r"fusion.*'a'.*before it is written"):
        made([("Tanh", "x", "a"), ("Softmax", "a", "y")], x=(6, 8))


def test_steps_side_by_side_find_nothing_of_each_other(plan: Plan) -> None:
    first, second, *rest = plan.launches
    assert isinstance(first, Single)
    assert isinstance(second, Single)
    both = Beside(name="both", steps=(first, second))
    with pytest.raises(InvariantError, match=r"'a'.*before it is written"):
        verify_kernels([both, *rest], plan.tensors, plan.outputs)
    chain = Chain(name="both", steps=(first, second))
    verify_kernels([chain, *rest], plan.tensors, plan.outputs)


def test_a_kernel_that_reads_what_it_writes(plan: Plan) -> None:
    change_kernel(plan, 0, lambda kernel: replace(kernel, reads=(*kernel.reads, "a")))
    with pytest.raises(InvariantError, match=r"'a'.*writes itself"):
        check(plan)


def test_an_output_that_nobody_writes(plan: Plan) -> None:
    first, *rest = plan.launches
    assert isinstance(first, Single)
    cut = [Wave(name="cut", steps=(Chain(name="cut", steps=(first,)),), shares=3, numbers=(n,)) for n in (0, 2)]
    verify_kernels([*cut, *rest], plan.tensors, plan.outputs)
    late = [cut[0], *rest, cut[1]]
    with pytest.raises(InvariantError, match=r"'a'.*before it is written"):
        verify_kernels(late, plan.tensors, plan.outputs)


# --- writes ---


def test_rows_that_stand_for_columns_too() -> None:
    """`y[i, j] = r[i] * r[j]` by a kernel whose work-items are rows: each writes y[i, i] only."""
    v = Var("v", 4)
    store = Store("y", (variable(v), variable(v)), Read("x", (variable(v),), "float32"))
    kernel = Kernel(name="rows", form="reduction", axes=(v,), stores=(store,), reads=("x",), writes=("y",))
    plan = made([("MatMul", "x z", "y")], x=(4, 3), z=(3, 4))
    with pytest.raises(InvariantError, match=r"kernel rows, tensor 'y'.*4 steps for 16 elements"):
        verify_kernels([Single(kernel=kernel)], plan.tensors, ["y"])


@pytest.mark.parametrize(
    "change",
    [
        lambda s: replace(s, indices=(s.indices[0], s.indices[0])),
        lambda s: replace(s, indices=(s.indices[0], Index(0))),
        lambda s: replace(s, indices=(s.indices[0], s.indices[1] // 2)),
        lambda s: replace(s, indices=(s.indices[0], s.indices[1] + 1)),
        lambda s: replace(s, indices=(s.indices[0],)),
        lambda s: replace(s, indices=(s.indices[0], variable(Var("strange", 8)))),
    ],
)
def test_elements_that_are_not_written_once(plan: Plan, change: Callable[[Store], Store]) -> None:
    store(plan, 1, change)
    with pytest.raises(InvariantError, match=r"fusion.*'b'"):
        verify_kernels(plan.launches, plan.tensors, plan.outputs, thorough=True)


def piece(name: str, rows: int, start: int) -> Single:
    """A kernel that writes some rows of y."""
    i, j = Var(f"{name}i", rows), Var(f"{name}j", 5)
    value = Read("x", (variable(i) + start, variable(j)), "float32")
    store = Store("y", (variable(i) + start, variable(j)), value)
    kernel = Kernel(name=name, form="pointwise", axes=(i, j), stores=(store,), reads=("x",), writes=("y",))
    return Single(kernel=kernel)


@pytest.mark.parametrize(
    ("rows", "start", "message"), [(4, 2, "write the same elements"), (3, 4, "30 of 35"), (3, 3, "30 of 35")]
)
def test_pieces_that_overlap_or_leave_a_gap(rows: int, start: int, message: str) -> None:
    tensors = made([("Tanh", "x", "y")], x=(7, 5)).tensors
    verify_kernels([piece("a", 3, 0), piece("b", 4, 3)], tensors, ["y"], thorough=True)
    with pytest.raises(InvariantError, match=message):
        verify_kernels([piece("a", 3, 0), piece("b", rows, start)], tensors, ["y"], thorough=True)


# --- bounds ---


def test_a_read_beyond_its_tensor(plan: Plan) -> None:
    def moved(one: Store) -> Store:
        return replace(one, value=Read("a", (one.indices[0], one.indices[1] + 1), "float32"))

    store(plan, 1, moved)
    with pytest.raises(InvariantError, match=r"'a'.*element 8 of axis 1, whose extent is 8"):
        verify_kernels(plan.launches, plan.tensors, plan.outputs, thorough=True)


def test_a_loop_that_runs_too_far(plan: Plan) -> None:
    k = Var("k", 9)

    def summed(one: Store) -> Store:
        return replace(one, value=Reduce("sum", (k,), Read("a", (one.indices[0], variable(k)), "float32"), "float32"))

    store(plan, 1, summed)
    with pytest.raises(InvariantError, match=r"'a'.*element 8 of axis 1"):
        verify_kernels(plan.launches, plan.tensors, plan.outputs, thorough=True)


# --- layouts and texts ---


@pytest.mark.parametrize(
    "layout", [Layout("buffer", (0,)), Layout("buffer", (0, 0)), Layout("buffer", (0, -1)), Layout("image", (0, 1), 2)]
)
def test_a_layout_of_other_axes(plan: Plan, layout: Layout) -> None:
    plan.tensors["b"] = replace(plan.tensors["b"], layout=layout)
    with pytest.raises(InvariantError, match=r"layout.*'b'"):
        check(plan)


def test_a_text_for_another_layout(plan: Plan) -> None:
    plan.tensors["b"] = replace(plan.tensors["b"], layout=Layout("buffer", (1, 0)))
    with pytest.raises(InvariantError, match=r"emission.*'b'.*accesses it as buffer\[d0d1\]"):
        check(plan)


def test_constants_of_another_size() -> None:
    plan = made([("Softmax", "x", "y")], x=(6, 8))
    plan.tensors["x"] = replace(plan.tensors["x"], role="constant", packed=np.zeros(47, np.float32))
    with pytest.raises(InvariantError, match=r"'x'.*188 bytes of values for 192"):
        verify_plan(plan)


def test_a_text_that_does_not_take_a_tensor(plan: Plan) -> None:
    source = plan.sources[1]
    change_source(plan, 1, arguments=(source.arguments[0], Argument("c", "write")))
    with pytest.raises(InvariantError, match="emission"):
        check(plan)


# --- memory ---


def test_tensors_that_overlap(plan: Plan) -> None:
    enqueues = [replace(one, launch=replace(one.launch, in_place={})) for one in plan.enqueues]
    plan = replace(plan, placement={name: Place(0, 0) for name in plan.placement}, enqueues=enqueues)
    with pytest.raises(InvariantError, match=r"memory.*written over"):
        check(plan)


def test_a_tensor_beyond_its_piece(plan: Plan) -> None:
    name = next(iter(plan.placement))
    plan.placement[name] = Place(0, plan.slots[0].bytes - 64)
    with pytest.raises(InvariantError, match=rf"memory.*'{name}'.*192 bytes"):
        check(plan)


# --- launches ---


@pytest.mark.parametrize("memory", ["buffer", "image"])
def test_a_launch_that_covers_too_little_or_too_much(memory: str) -> None:
    plan = made([("Softmax", "x", "a"), ("Neg", "a", "y")], memory=memory, x=(6, 8))
    assert check_launches(plan) == 2
    source = plan.sources[0]
    size = (source.global_size[0] - 1, *source.global_size[1:])
    change_source(plan, 0, global_size=size, local_size=None)
    with pytest.raises(InvariantError, match=r"emission.*'a'.*0 launches write the element"):
        check_launches(plan)


def edited(source: Source, old: str, new: str) -> Source:
    assert old in source.text
    return replace(source, text=source.text.replace(old, new))


def test_a_text_that_writes_elsewhere(plan: Plan) -> None:
    whole = plan.sources[0]
    change_source(plan, 0, text=edited(whole, "p1 + i0 * 8", "p1 + (i0 * 8 + 1)").text)
    with pytest.raises(InvariantError, match=r"'a'"):
        check_launches(plan)
    change_source(plan, 0, text=edited(whole, "p1 + i0 * 8", "p1 + i0 * 4").text)
    with pytest.raises(InvariantError, match=r"'a'.*several work-items write the element"):
        check_launches(plan)
