"""Several kernel texts in one program."""

from __future__ import annotations

import pyopencl as cl

from smartmem_rules.plan.artefact import Source
from smartmem_rules.runtime.compiling import Programs
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.program_cache import ProgramCache

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
