"""A driver that compiles one kernel wrongly: what it is given is changed between the plan and the OpenCL compiler."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyopencl as cl
import pytest

from smartmem_rules.runtime.programs import compiling

_BEGIN = "SMR_FUNCTIONS(8, float8, int8)\n#endif // SMR_PRELUDE\n"
"""The last lines of what stands before each kernel (codegen/prelude.cl)."""
_LOOP = r"for \(int (\w+) = ([^;]+); (\w+) < (\d+); "
_SUM = r"(\w+) \+= (?=[^;]*\*)"
_NUMBER = r"(?<![\w.])(\d+\.\d+)(e[-+]?\d+)?f\b"
_VECTOR = r"(\*\((?:__global )?smr_float(\d)\*\)\([^;=]*\)) = ([^;]+);"
_ELEMENT = r"\b(p\d+\[[^\];]+\]) = ([^;]+);"
_ADDEND = r"(?<=[\w)]) \+ (?=[a-z]\w*\[|\w*acc|\(*t\d)"
_LANES = r"\+ 8\)"
_EXTREME = r"\bsmr_(max|min)(\d)\("
_ITEM = r"get_global_id\(0\)"
_KERNEL = r"__kernel[^;{}]*\{\n"
_PART = re.compile(r"\bsmr_part_[0-9a-f]{12}")


def _shorter(found: re.Match[str]) -> str:
    return f"for (int {found[1]} = {found[2]}; {found[3]} < {int(found[4]) - 1}; " if int(found[4]) > 1 else found[0]


def _later(found: re.Match[str]) -> str:
    return f"for (int {found[1]} = 1; {found[3]} < {found[4]}; " if found[2] == "0" else found[0]


def _lane(found: re.Match[str]) -> str:
    factors = ", ".join(["1.0f"] * (int(found[2]) - 1) + ["0.5f"])
    return f"{found[1]} = ({found[3]}) * (float{found[2]})({factors});"


def _exchanged(found: re.Match[str]) -> str:
    return f"smr_{'min' if found[1] == 'max' else 'max'}{found[2]}("


Change = Callable[[re.Match[str]], str]
FAULTS: dict[str, tuple[str, Change]] = {
    "a loop that ends too early": (_LOOP, _shorter),
    "a loop that begins too late": (_LOOP, _later),
    "a product subtracted, not added": (_SUM, lambda found: f"{found[1]} -= "),
    "another number": (_NUMBER, lambda found: f"({found[0]} * 1.25f + 0.125f)"),
    "one lane of a vector": (_VECTOR, _lane),
    "a result that is 3 percent too large": (_ELEMENT, lambda found: f"{found[1]} = ({found[2]}) * 1.03f;"),
    "a term subtracted, not added": (_ADDEND, lambda found: " - "),
    "the vector before": (_LANES, lambda found: "+ 0)"),
    "the smaller for the larger": (_EXTREME, _exchanged),
    "a work-item in another's place": (_ITEM, lambda found: "(get_global_id(0) / 2 * 2)"),
    "a work-item that does nothing": (_KERNEL, lambda found: f"{found[0]}if (get_global_id(0) == 0) return;\n"),
}
"""What goes wrong, as a place in a kernel's text and what is compiled there instead."""


def changed(text: str, kind: str, random_: random.Random) -> str | None:
    """A kernel's text with one fault at a place that is drawn; None where there is no place for it."""
    pattern, change = FAULTS[kind]
    start = text.index(_BEGIN) + len(_BEGIN)
    if kind.startswith("a work-item") and ("barrier(" in text[start:] or "atomic" in text[start:]):
        return None  # the others would wait for it
    places = [found for found in re.finditer(pattern, text[start:]) if change(found) != found[0]]
    if not places:
        return None
    found = random_.choice(places)
    at = start + found.start()
    made = text[:at] + change(found) + text[at + len(found[0]) :]
    # a program takes the first of several copies of a part: this kernel's own one must be compiled
    return _PART.sub(r"\g<0>_planted", made)


@contextmanager
def compiled_instead(old: str, new: str) -> Iterator[None]:
    """Let the OpenCL compiler see another text in the place of a kernel's."""
    real = cl.Program

    def program(context: Any, *given: Any) -> Any:
        return real(context, *(one.replace(old, new) if isinstance(one, str) else one for one in given))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cl, "Program", program)
        patch.setattr(compiling, "excerpt", lambda text: text)  # the whole text is looked for
        # neither are right programs of other plans taken, nor wrong ones left to them
        patch.setattr(compiling, "programs_in", lambda context, device: {})
        patch.setattr(compiling, "note_use", lambda program, device: None)
        yield
