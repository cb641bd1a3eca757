"""Several kernel texts in one program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyopencl as cl
import pytest

from smartmem_rules import load
from smartmem_rules.plan.artefact import Source
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.plan_file import save_plan
from smartmem_rules.runtime.programs.compiling import Programs
from smartmem_rules.runtime.programs.program_cache import ProgramCache
from tests.runtime.c.library import open_plan
from tests.runtime.plans import make_plan

ROUNDED = "#pragma OPENCL FP_CONTRACT OFF\n__kernel void smr_kernel(__global float* y) { y[0] = y[1] * y[2] - y[3]; }\n"
PLAIN = "__kernel void smr_kernel(__global float* y) { y[0] = y[1] * y[2] + y[3]; }\n"


def test_what_a_text_says_of_rounding_ends_with_it() -> None:
    device = choose()
    sources = [
        Source(entry="smr_kernel", text=text, arguments=(), global_size=(1,), local_size=(1,))
        for text in (ROUNDED, PLAIN)
    ]
    context = cl.Context([device.handle])
    programs = Programs(context, device, sources, ["rounded", "plain"], cache=ProgramCache(None))
    first, second = (programs.kernel(source) for source in sources)
    together = first.program.get_info(cl.program_info.SOURCE)
    assert together == second.program.get_info(cl.program_info.SOURCE)
    between = together[together.index(ROUNDED) + len(ROUNDED) : together.index(PLAIN)]
    assert "FP_CONTRACT DEFAULT" in between


def test_what_texts_begin_with_stands_in_their_program_once() -> None:
    device = choose()
    prelude, other = (f"#ifndef SMR_PRELUDE\n#define SMR_PRELUDE {n}\n#endif // SMR_PRELUDE\n" for n in (1, 2))
    kernels = [f"__kernel void smr_kernel(__global int* y) {{ y[{n}] = SMR_PRELUDE; }}\n" for n in range(3)]
    texts = [begin + kernel for begin, kernel in zip((prelude, prelude, other), kernels, strict=True)]
    sources = [Source(entry="smr_kernel", text=text, arguments=(), global_size=(1,), local_size=(1,)) for text in texts]
    context = cl.Context([device.handle])
    programs = Programs(context, device, sources, ["a", "b", "c"], cache=ProgramCache(None))
    together = programs.kernel(sources[0]).program.get_info(cl.program_info.SOURCE)
    assert [together.count(begin) for begin in (prelude, other)] == [1, 1]
    assert all(together.count(kernel) == 1 for kernel in kernels)


def test_a_plan_brings_its_programs_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_plan(make_plan(), tmp_path / "a.plan")
    load(tmp_path / "a.plan").save(tmp_path / "b.plan", binaries=True)
    plan = load(tmp_path / "b.plan").plan
    assert plan.binaries
    monkeypatch.setattr(Programs, "_with_all_declarations", lambda *_: pytest.fail("it compiles"))
    monkeypatch.setattr(Programs, "_with_few_declarations", lambda *_: pytest.fail("it compiles"))
    found = choose()
    alone = replace(found, workarounds=tuple(w for w in found.workarounds if w.effect != "shares_programs"))
    context = cl.Context([found.handle])
    names = [launch.name for launch in plan.launches]
    Programs(context, alone, plan.sources, names, cache=ProgramCache(None), binaries=plan.binaries)


def test_programs_that_a_driver_refuses_are_compiled(tmp_path: Path) -> None:
    save_plan(make_plan(), tmp_path / "a.plan")
    plan = load(tmp_path / "a.plan")
    keys = plan.prepare().binaries()
    save_plan(replace(plan.plan, binaries=dict.fromkeys(keys, b"no program")), tmp_path / "b.plan")
    feeds = plan.random_feeds(1)
    expected = plan.run(feeds)["y"]
    np.testing.assert_array_equal(load(tmp_path / "b.plan").run(feeds)["y"], expected)
    with open_plan(tmp_path / "b.plan") as opened, opened.session() as session:
        np.testing.assert_array_equal(session.run(feeds)["y"], expected)
