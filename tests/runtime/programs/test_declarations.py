"""Programs that bring the declarations of the built-in functions that they name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyopencl as cl
import pytest

from smartmem_rules.plan.artefact import Source
from smartmem_rules.runtime.devices import Device, choose
from smartmem_rules.runtime.programs import declarations as reading
from smartmem_rules.runtime.programs.compiling import BuildError, Programs
from smartmem_rules.runtime.programs.declarations import (
    OWN_DECLARATIONS,
    Declarations,
    declarations,
    kept_declarations,
)
from smartmem_rules.runtime.programs.program_cache import ProgramCache

KERNEL_HEADER = "#undef FP_ILOGB0\n#define FP_ILOGB0 INT_MIN\n"
OWN_HEADER = """
#ifndef _OPENCL_H_
#include <opencl-c.h>
#ifdef cl_khr_fp16
half f(half8 p); // one more
#endif
#endif
"""
CLANGS_HEADER = r"""
#ifndef _OPENCL_H_
#define _OPENCL_H_
#include "opencl-c-base.h"
#define __ovld __attribute__((overloadable))
float __ovld f(float x);
/* float f(char); */
float __ovld g(float x,
               float y);
#ifdef cl_khr_fp64
#if defined(A) && \
    defined(B)
double __ovld f(double x);
#else
int __ovld f(int x);
#endif
double __ovld g(double x);
#elif defined(C)
#define HAS_C
#endif
#undef __ovld
#endif
"""
TYPES = "#define FP_ILOGB0 7\ntypedef unsigned int uint;\ntypedef enum e {\n  one,\n  two\n} e;\n"

MANY = """
__kernel void smr_kernel(__global float* y, __global uint* z) {
  float4 x = vload4(0, y);
  vstore4(fma(exp(x), tanh(x), native_sqrt(convert_float4(convert_int4_sat_rte(x)))), 0, y);
  z[0] = atomic_inc(z + 1) + popcount(as_uint(x.x)) + clamp(z[2], 3u, 5u) + any(isnan(x));
  barrier(CLK_GLOBAL_MEM_FENCE);
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    names = ("_kernel.h", "_clang_opencl.h", "opencl-c.h", "opencl-c-base.h")
    for name, text in zip(names, (KERNEL_HEADER, OWN_HEADER, CLANGS_HEADER, TYPES), strict=True):
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def headers(folder: Path) -> Declarations:
    return Declarations(folder)


def test_all_overloads_of_a_named_function_are_declared_under_their_conditions(headers: Declarations) -> None:
    assert headers.before("x = f(y);").splitlines() == [
        "typedef unsigned int uint;",
        "typedef enum e { one, two } e;",
        "#define __ovld __attribute__((overloadable))",
        "float __ovld f(float x);",
        "#ifdef cl_khr_fp64",
        "#if defined(A) &&      defined(B)",
        "double __ovld f(double x);",
        "#else",
        "int __ovld f(int x);",
        "#endif",
        "#elif defined(C)",
        "#define HAS_C",
        "#endif",
        "#undef __ovld",
        "#ifdef cl_khr_fp16",
        "half f(half8 p);",
        "#endif",
        "#pragma OPENCL EXTENSION all : disable",
        "#line 1",
    ]


def test_functions_that_a_text_does_not_name_are_not_declared(headers: Declarations) -> None:
    assert "g(float x, float y);" in headers.before("g(1, 2)")
    assert "g(" not in headers.before("ff(gg)")
    assert "f(" not in headers.before("ff(gg)").replace("if(", "").replace("elif", "")


def test_headers_are_read_again_where_they_changed_and_where_what_was_kept_is_damaged(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("SMARTMEM_CACHE", str(cache))
    read: list[str] = []
    items = reading._items
    monkeypatch.setattr(reading, "_items", lambda *given: read.append(given[1]) or items(*given))

    def begins(times: int) -> str:
        read.clear()
        text = kept_declarations(folder).before("x = f(y);")
        assert read.count("_clang_opencl.h") == times
        return text

    first = begins(1)
    assert begins(0) == first == Declarations(folder).before("x = f(y);")
    (kept,) = (cache / "declarations").iterdir()
    kept.write_bytes(kept.read_bytes()[:-100])
    assert begins(1) == first
    assert begins(0) == first
    (folder / "opencl-c.h").write_text(CLANGS_HEADER.replace("float __ovld f(float x)", "float __ovld f(float xx)"))
    assert begins(1) == first.replace("f(float x)", "f(float xx)")
    monkeypatch.setenv("SMARTMEM_CACHE", "off")
    begins(1)


@pytest.fixture
def device() -> Device:
    found = choose()
    if not found.workaround("parses_all_declarations") or declarations() is None:
        pytest.skip("this driver is not PoCL 3.0 with its headers")
    return found


def programs(device: Device, text: str, *options: str) -> tuple[Programs, Source]:
    source = Source(
        entry="smr_kernel", text=text, arguments=(), global_size=(1,), local_size=(1,), options=tuple(options)
    )
    return Programs(cl.Context([device.handle]), device, [source], ["k"], cache=ProgramCache(None)), source


def test_an_excerpt_gives_the_results_of_all_declarations(device: Device) -> None:
    known = declarations()
    assert known is not None
    context = cl.Context([device.handle])
    found = []
    for text, options in ((MANY, []), (known.before(MANY) + MANY, [OWN_DECLARATIONS])):
        program = cl.Program(context, text).build(options=options, cache_dir=False)
        y, z = np.array([-1.5, 0.3, 2.5, 7.0], np.float32), np.array([0, 3, 9], np.uint32)
        both = [cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=data) for data in (y, z)]
        queue = cl.CommandQueue(context)
        program.smr_kernel(queue, (1,), (1,), *both)
        for data, buffer in zip((y, z), both, strict=True):
            cl.enqueue_copy(queue, data, buffer)
        found.append((y.tobytes(), z.tobytes()))
    assert found[0] == found[1]


def test_a_program_brings_its_own_declarations(device: Device) -> None:
    built, source = programs(device, MANY)
    text = built.kernel(source).program.get_info(cl.program_info.SOURCE)
    assert text.endswith(MANY)
    assert "float4 __ovld __cnfn tanh(float4" in text
    assert "sinh" not in text


def test_a_function_that_only_an_option_names_is_found_among_all_declarations(device: Device) -> None:
    text = "__kernel void smr_kernel(__global float* y) { y[0] = F(y[1]); }\n"
    built, source = programs(device, text, "-DF=tanh")
    assert built.kernel(source).program.get_info(cl.program_info.SOURCE) == text


def test_an_error_is_found_at_its_own_line(device: Device) -> None:
    with pytest.raises(BuildError, match=r":2:\d+: .*undeclared identifier 'x'"):
        programs(device, "__kernel void smr_kernel(__global float* y) {\n y[0] = exp(x); }\n")
