"""Loops whose ends depend on data: as far as they are unrolled they are ONNX Runtime's, beyond it a run says so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from smartmem_rules import load, optimize
from smartmem_rules.errors import SmartmemError
from smartmem_rules.limits import MOST_VALUES, Limits
from smartmem_rules.optimized import OptimizedPlan
from smartmem_rules.runtime.executor import UnendedLoopError
from tests.runtime.c.library import CError, open_plan

ort = pytest.importorskip("onnxruntime")

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
UNENDED = 17
"""The status of the C runtime."""
BODY = """body = step (int64 i, bool g, float[2] s) => (bool h, float[2] t, float[2] each) {
            k = Cast <to = 1> (i)
            d = Add (s, s)
            t = Add (d, k)
            each = Neg (t)
            r = ReduceMax <keepdims = 0> (t)
            h = Less (r, bound)
        }"""
"""Doubles the state until one of its elements reaches the bound."""
WHILE = f"""
f (bool go, float[2] x, float bound) => (float[2] last, float[steps, 2] all) {{
    CONSTANT
    last, all = Loop (LIMIT, go, x) <{BODY}>
}}"""


def while_loop(limit: int | None) -> str:
    """The loop with a trip count or without."""
    if limit is None:
        return WHILE.replace("CONSTANT", "").replace("LIMIT", "")
    return WHILE.replace("CONSTANT", f"n = Constant <value: tensor = int64 {{{limit}}}> ()").replace("LIMIT", "n")


CHOSEN = f"""
f (bool c, float[2] x, float bound) => (float[2] y) {{
    y = If (c) <
        then_branch = a () => (float[2] p) {{ p, q = Loop (, , x) <{BODY}> }},
        else_branch = b () => (float[2] n) {{ n = Neg (x) }}
    >
}}"""
NESTED = f"""
f (float[2] x, float bound) => (float[2] y) {{
    y = Loop (, , x) <
        body = outer (int64 j, bool f, float[2] u) => (bool e, float[2] v) {{
            v, w = Loop (, , u) <{BODY}>
            m = ReduceMax <keepdims = 0> (v)
            twice = Add (bound, bound)
            e = Less (m, twice)
        }}
    >
}}"""
UNUSED = f"""
f (float[2] x, float bound) => (float[2] y) {{
    last, all = Loop (, , x) <{BODY}>
    y = Neg (x)
}}"""
COUNTED = """
f (float[2] x, int64[COUNTS] lengths) => (float[2] y, float[steps, 2] all) {
    n = ReduceMax <keepdims = 0> (lengths)
    y, all = Loop (n, , x) <
        body = step (int64 i, bool g, float[2] s) => (bool h, float[2] t, float[2] each) {
            h = Identity (g)
            k = Cast <to = 1> (i)
            t = Add (s, k)
            each = Neg (t)
        }
    >
}""".replace("COUNTS", str(MOST_VALUES + 1))
GROWING = """
f (float[n] x, float bound) => (float[m] y) {
    y = Loop (, , x) <
        body = step (int64 i, bool g, float[k] s) => (bool h, float[l] t) {
            t = Concat <axis = 0> (s, s)
            r = ReduceSum <keepdims = 0> (t)
            h = Less (r, bound)
        }
    >
}""".replace("float[n]", "float[2]")


SAID = """
f (bool[9] ends) => (OUTPUT) {
    zero = Constant <value: tensor = int64 {0}> ()
    one = Constant <value: tensor = int64[1] {1}> ()
    s, p = Loop (, , zero) <
        body = step (int64 i, bool g, int64 s0) => (bool h, int64 s1, int64 each) {
            h = Gather (ends, i)
            s1 = Identity (i)
            each = EACH
        }
    >
    READER
}"""
"""What is known of each step at import, and what a model asks of it."""
ASKED = {
    "a state": ("int64 y", "y = Identity (s)"),
    "a number of a state": ("int64 y", "y = Add (s, s)"),
    "all": ("int64[n] p", ""),
    "numbers of all": ("int64[n] y", "y = Neg (p)"),
    "the shape": ("int64[1] y", "y = Shape (p)"),
    "the size": ("int64 y", "y = Size (p)"),
    "the shape of what is joined": ("int64[1] y", "j = Concat <axis = 0> (p, p, one) y = Shape (j)"),
    "as many": ("float[n] y", "n = Shape (p) v = Constant <value_float = 2.0> () y = Expand (v, n)"),
    "the sum": ("int64 y", "y = ReduceSum <keepdims = 0> (p)"),
}


def made(text: str, steps: int = 8, **options: Any) -> OptimizedPlan:
    return optimize(onnx.parser.parse_model(HEAD + text), limits=Limits(steps=steps), **options)


def feeds_of(**values: Any) -> dict[str, np.ndarray]:
    given = {n: np.asarray(v) for n, v in values.items()}
    return {n: v.astype(np.float32) if v.dtype == np.float64 else v for n, v in given.items()}


def reference(text: str, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = onnx.parser.parse_model(HEAD + text)
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


def same(plan: OptimizedPlan, text: str, feeds: Mapping[str, np.ndarray]) -> None:
    found, wanted = plan.run(feeds), reference(text, feeds)
    assert list(found) == list(wanted)
    for name, array in wanted.items():
        assert (found[name].shape, found[name].dtype) == (array.shape, array.dtype)
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.covering
@pytest.mark.parametrize("limit", [None, 9, 2**40])
@pytest.mark.parametrize("level", ["none", "smartmem"])
def test_as_many_steps_as_are_unrolled_and_no_more(limit: int | None, level: str) -> None:
    text = while_loop(limit)
    plan = made(text, level=level)
    assert plan.plan.endings is not None
    x = [1.0, -1.0]
    taken = set()
    for bound in (0.0, 3.0, 10.0, 60.0, 200.0, 249.0, 503.0):
        feeds = feeds_of(go=True, x=x, bound=bound)
        taken.add(reference(text, feeds)["all"].shape[0])
        same(plan, text, feeds)
    assert max(taken) == 8
    for bound in (504.0, np.inf, np.nan):
        feeds = feeds_of(go=True, x=x, bound=bound)
        if np.isnan(bound):  # which nothing is less than
            same(plan, text, feeds)
            continue
        with pytest.raises(UnendedLoopError, match=r"Loop .* has not ended after 8 steps.*limits=Limits\(steps=N\)"):
            plan.run(feeds)
    same(plan, text, feeds_of(go=False, x=x, bound=np.inf))  # after an error, and without a step
    same(plan, text, feeds_of(go=True, x=x, bound=10.0))


def test_a_trip_count_that_the_limit_reaches_always_ends() -> None:
    text = while_loop(9)
    assert made(text, 9).plan.endings is None
    assert made(text, 8).plan.endings is not None
    same(made(text, 9), text, feeds_of(go=True, x=[1.0, 0.0], bound=np.inf))


def test_a_loop_in_a_branch_counts_where_the_branch_is_taken() -> None:
    plan = made(CHOSEN)
    same(plan, CHOSEN, feeds_of(c=False, x=[1.0, 2.0], bound=np.inf))
    same(plan, CHOSEN, feeds_of(c=True, x=[1.0, 2.0], bound=20.0))
    with pytest.raises(UnendedLoopError, match="after 8 steps"):
        plan.run(feeds_of(c=True, x=[1.0, 2.0], bound=np.inf))


def test_loops_in_loops() -> None:
    plan = made(NESTED, 4)
    for bound in (2.0, 5.0, 8.0):
        same(plan, NESTED, feeds_of(x=[1.0, 2.0], bound=bound))
    with pytest.raises(UnendedLoopError, match="after 4 steps"):
        plan.run(feeds_of(x=[1.0, 2.0], bound=1e6))
    with pytest.raises(UnendedLoopError, match="after 4 steps"):  # the inner one ends at once, the outer one never
        plan.run(feeds_of(x=[-1.0, -2.0], bound=-1.0))


def test_a_loop_that_nothing_depends_on_need_not_end() -> None:
    plan = made(UNUSED)
    assert plan.plan.endings is None
    np.testing.assert_array_equal(plan.run(feeds_of(x=[1.0, 2.0], bound=np.inf))["y"], [-1.0, -2.0])


@pytest.mark.covering
@pytest.mark.parametrize("asked", list(ASKED))
@pytest.mark.parametrize("each", ["Identity (s0)", "Identity (i)", "Cast <to = 7> (h)"])
@pytest.mark.parametrize("steps", [1, 3])
def test_whatever_is_asked_of_a_loop_hangs_on_its_end(asked: str, each: str, steps: int) -> None:
    output, reader = ASKED[asked]
    text = SAID.replace("OUTPUT", output).replace("READER", reader).replace("EACH", each)
    plan = made(text, steps, level="none")
    assert plan.plan.endings is not None
    for count in range(1, 10):
        feeds = {"ends": np.arange(1, 10) < count}
        if count <= steps:
            same(plan, text, feeds)
        else:
            with pytest.raises(UnendedLoopError, match=f"after {steps} steps"):
                plan.run(feeds)


@pytest.mark.parametrize("count", [-1, 0, 1, 5, 8])
def test_a_trip_count_that_is_computed_from_data(count: int) -> None:
    lengths = np.full(MOST_VALUES + 1, count)
    plan = made(COUNTED)
    same(plan, COUNTED, feeds_of(x=[1.0, 2.0], lengths=lengths))
    with pytest.raises(UnendedLoopError):
        plan.run(feeds_of(x=[1.0, 2.0], lengths=lengths + 9 - count))


def test_a_state_that_grows_until_data_says_otherwise_is_refused() -> None:
    with pytest.raises(SmartmemError, match=r"a state changes its shape.*\[\d+\], then \[\d+\].*give it a trip count"):
        made(GROWING)


def test_a_plan_file_tells_in_both_runtimes(tmp_path: Path) -> None:
    text = while_loop(None)
    path = tmp_path / "a.plan"
    plan = made(text)
    plan.save(path)
    loaded = load(path)
    assert loaded.plan.endings == plan.plan.endings
    good, bad = (feeds_of(go=True, x=[1.0, -1.0], bound=bound) for bound in (60.0, np.inf))
    same(loaded, text, good)
    with pytest.raises(UnendedLoopError) as python:
        loaded.run(bad)
    with open_plan(path) as opened, opened.session() as session:
        assert list(session.run(good)) == ["last", "all"]
        with pytest.raises(CError) as caught:
            session.run(bad)
        assert caught.value.status == UNENDED
        assert str(python.value) in str(caught.value)
        wanted = reference(text, good)
        for name, array in session.run(good).items():
            np.testing.assert_array_equal(array, wanted[name])
