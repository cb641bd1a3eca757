"""Who needs whom among kernels, beside what a look at all paths says."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, strategies as st

from smartmem_rules.language.blocks.device import Device
from smartmem_rules.language.blocks.fuse import Horizontal
from smartmem_rules.plan.kernel.graph import KernelGraph, needs, toposort
from smartmem_rules.plan.kernel.launch import Launch, Single
from smartmem_rules.plan.kernel.model import Kernel
from smartmem_rules.plan.launch import horizontal_cpu
from smartmem_rules.plan.launch.horizontal_cpu import side_by_side
from smartmem_rules.rulebase.base import load_rules

Edges = dict[int, tuple[int, ...]]


def kernel(name: str, reads: str, writes: str, operations: int = 0) -> Kernel:
    read, written = tuple(reads.split()), tuple(writes.split())
    return Kernel(name=name, form="pointwise", reads=read, writes=written, operations=operations)


def test_an_order_is_found_or_there_is_none() -> None:
    a, b, c = kernel("a", "x q", "p"), kernel("b", "x", "q"), kernel("c", "p", "y")
    ordered = KernelGraph([a, b, c]).in_order()
    assert ordered is not None
    assert [k.name for k in ordered] == ["b", "a", "c"]
    assert KernelGraph([a, kernel("b", "y", "q"), c]).in_order() is None


def test_a_kernel_that_reads_what_it_writes_needs_no_other() -> None:
    graph = KernelGraph([kernel("a", "x state", "state"), kernel("b", "state", "y")])
    assert (graph.producers(0), graph.producers(1), graph.consumers(0)) == ([], [0], [1])
    assert graph.in_order() is not None


@st.composite
def edges(draw: st.DrawFn) -> Edges:
    count = draw(st.integers(1, 6))
    pairs = [p for p in itertools.product(range(count), repeat=2) if p[0] != p[1]]
    drawn = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=9)) if pairs else []
    return {n: tuple(b for a, b in drawn if a == n) for n in range(count)}


def reached(graph: Edges, start: int) -> set[int]:
    """All that a node needs, by following every edge as long as something new comes."""
    found: set[int] = set()
    while new := {b for a in (start, *found) for b in graph[a]} - found:
        found |= new
    return found


@given(edges())
def test_needs_and_orders(graph: Edges) -> None:
    for a, b in itertools.product(graph, repeat=2):
        assert needs([a], b, graph.__getitem__) == (b in reached(graph, a))
    order = toposort(graph, graph.__getitem__)
    circle = any(n in reached(graph, n) for n in graph)
    assert (order is None) == circle
    if order is not None:
        assert sorted(order) == sorted(graph)
        assert all(order.index(b) < order.index(a) for a in graph for b in graph[a])


def test_a_reader_stands_behind_all_who_write_a_part_of_what_it_reads() -> None:
    """The first part is made behind another kernel, the second one in the first launch."""
    base = load_rules()
    rule = next(one for one in base.fuses.values() if isinstance(one, Horizontal))
    kernels = [
        kernel("first", "x", "p"),
        kernel("upper", "p", "t"),
        kernel("lower", "x", "t"),
        kernel("reader", "t", "y"),
    ]
    launches = side_by_side([Single(kernel=one) for one in kernels], rule, base.devices["pocl"])
    assert [sorted(one.name for one in launch.kernels) for launch in launches] == [
        ["first", "lower"],
        ["upper"],
        ["reader"],
    ]


def test_each_of_many_launches_is_weighed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    base = load_rules()
    rule = next(one for one in base.fuses.values() if isinstance(one, Horizontal))
    weighed: list[Launch] = []
    is_small = horizontal_cpu._is_small

    def counted(launch: Launch, rule: Horizontal, device: Device) -> bool:
        weighed.append(launch)
        return is_small(launch, rule, device)

    monkeypatch.setattr(horizontal_cpu, "_is_small", counted)
    many = [Single(kernel=kernel(f"k{n}", "x", f"y{n}")) for n in range(60)]
    (launch,) = side_by_side(many, rule, base.devices["pocl"])
    assert len(launch.kernels) == len(weighed) == 60
