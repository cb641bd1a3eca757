"""Of the prelude a program keeps what it needs, and what stays means what it meant."""

from __future__ import annotations

import io
import re
from functools import cache

import pyopencl as cl
import pytest
from pcpp import Preprocessor

from smartmem_rules.plan.artefact import Source
from smartmem_rules.resources import templates_path
from smartmem_rules.runtime.devices import choose
from smartmem_rules.runtime.programs.compiling import Programs
from smartmem_rules.runtime.programs.declarations import declarations
from smartmem_rules.runtime.programs.excerpts import excerpt
from smartmem_rules.runtime.programs.program_cache import ProgramCache

PRELUDE = (templates_path() / "prelude.cl").read_text().rstrip("\n") + "\n"
WORLDS = ("", "#define SMR_CPU\n#define cl_khr_fp64 1\n", "#define SMR_CPU\n#define SMR_BYTE_TILES\n#define __FMA__\n")
"""Of devices: what conditions ask for decides which definitions there are."""
OWN = "__kernel void smr_kernel(__global float* y, __global int* n) {{ {} }}\n"


@cache
def functions(world: str, text: str) -> dict[str, str]:
    """What the preprocessor leaves of each function of the prelude, with its overloads and attributes, by names."""
    reader = Preprocessor()
    reader.define("__has_builtin(X) 1")
    reader.define("__has_attribute(X) 1")
    reader.parse(world + text)
    written = io.StringIO()
    reader.write(written)
    plain = re.sub(r"\s+", " ", re.sub(r"^#.*$", "", written.getvalue(), flags=re.M))
    found: dict[str, str] = {}
    for one in re.split(r"(?=__attribute__\(\(target\()|(?<!\)\) )(?=static inline )", plain.partition("__kernel")[0]):
        if name := re.search(r"static inline (?:__attribute__\(\(\w+\)\) )?\w+ (\w+)\(", one):
            found[name[1]] = found.get(name[1], "") + one.strip()
    return found


@pytest.mark.parametrize("world", WORLDS, ids=["gpu", "processor", "processor-units"])
def test_each_function_comes_with_all_that_it_calls_and_little_else(world: str, all_cases: bool) -> None:
    everything = functions(world, PRELUDE)
    assert len(everything) > 50
    sizes = []
    for name in [*everything][:: 1 if all_cases else 6]:
        kept = functions(world, excerpt(PRELUDE + OWN.format(f"{name}(y[0]);")))
        assert name in kept
        for one, text in kept.items():
            assert text == everything[one], f"{one}, where {name} is used"
            called = {word for word in re.findall(r"\w+", text) if word in everything}
            assert called <= kept.keys(), f"{one}, where {name} is used"
        sizes.append(len(kept))
    assert sorted(sizes)[len(sizes) // 2] < len(everything) / 2


def test_what_a_condition_asks_for_stays() -> None:
    own = "#ifdef SMR_BYTES_256\nint smr_a;\n#endif\n#ifdef SMR_HAS_FMA\nint smr_b;\n#endif\n" + OWN.format("")
    text = excerpt(PRELUDE + own)
    for name in ("SMR_BYTES_256", "SMR_HAS_FMA"):
        assert text.count(f"#define {name}\n") == PRELUDE.count(f"#define {name}\n") > 0
    assert text.endswith(own)


@pytest.mark.parametrize(
    "text",
    [
        OWN.format("y[0] = 1;"),
        PRELUDE + "#define both(X) smr_##X##1(X)\n" + OWN.format("y[0] = both(exp);"),
        PRELUDE + OWN.format("") + PRELUDE + OWN.format(""),
        "#ifndef SMR_PRELUDE\n#define SMR_PRELUDE 2\nint a;\n#endif // SMR_PRELUDE\n" + OWN.format(""),
    ],
    ids=["none", "joined names", "two", "another"],
)
def test_what_it_cannot_tell_stays_whole(text: str) -> None:
    assert excerpt(text) == text


@pytest.mark.parametrize("name", ["exp", "sin", "tan", "erf", "max", "sigmoid"])
def test_excerpts_compile(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    device = choose()
    known = declarations() if device.workaround("parses_all_declarations") else None
    if known is None:
        pytest.skip("the driver brings its own declarations")
    monkeypatch.setattr(Programs, "_with_all_declarations", lambda *_: pytest.fail("the excerpt lacks something"))
    operands = "vload8(0, y), vload8(1, y)" if name == "max" else "vload8(0, y)"
    text = "#define SMR_CPU\n" + PRELUDE + OWN.format(f"vstore8(smr_{name}8({operands}), 0, y);")
    source = Source(entry="smr_kernel", text=text, arguments=(), global_size=(1,), local_size=(1,))
    programs = Programs(cl.Context([device.handle]), device, [source], [name], cache=ProgramCache(None))
    built = programs.kernel(source).program.get_info(cl.program_info.SOURCE)
    assert len(built) < len(known.before(text)) + len(text)
