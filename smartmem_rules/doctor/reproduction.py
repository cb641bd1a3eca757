"""A wrong kernel as a program of its own: one C file and one .cl."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from smartmem_rules.bundle import rendered
from smartmem_rules.errors import SmartmemError
from smartmem_rules.plan.artefact import Plan, Source
from smartmem_rules.plan.kernel.model import Stored
from smartmem_rules.plan.kernel.storage import memory_shape
from smartmem_rules.plan.probe import GIVEN, SIGNS, UNSET, Filling, Probe, Rows, signs
from smartmem_rules.records import dataclass
from smartmem_rules.resources import native_path
from smartmem_rules.runtime.devices import Device
from smartmem_rules.runtime.programs.compiling import options_of
from smartmem_rules.runtime.selftest.report import device_text
from smartmem_rules.tensor.primitives import storage_dtype
from smartmem_rules.whole_files import write_whole

_KINDS = {
    "float16": "F16", "float32": "F32", "float64": "F64", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64",
    "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64", "bool": "U8",
}  # fmt: skip
_WORDS = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}
_MOST_CODES = 256
_IN_A_LINE = 24


class ReproductionError(SmartmemError):
    """No program can be written for a kernel; the message says why."""


@dataclass(frozen=True, kw_only=True)
class _Array:
    name: str
    type: str
    text: str


@dataclass(frozen=True, kw_only=True)
class _Contents:
    name: str
    values: str
    codes: str
    rows: str
    width: int
    count: int


@dataclass(frozen=True, kw_only=True)
class _Argument:
    name: str
    element: str
    elements: int
    width: int
    height: int
    given: str
    expected: str
    bound: str


def write_reproduction(
    plan: Plan, probe: Probe, source: Source, differences: Sequence[str], device: Device, folder: Path
) -> tuple[Path, Path]:
    """Write the two files of a kernel that answers a probe wrongly; gives their paths.

    Args:
        source: what the device compiled.
        differences: what is wrong, for readers.

    Raises:
        ReproductionError: the folder cannot be written, or the kernel takes elements that C does not have.
    """
    writer = _Writer()
    arguments = [
        writer.argument(plan.tensors[argument.tensor], filling, probe, number)
        for number, (argument, filling) in enumerate(zip(source.arguments, probe.fillings, strict=True))
    ]
    launch = plan.enqueues[probe.launches[0]].launch
    name = re.sub(r"[^\w-]", "_", launch.name)
    options = options_of(source, device)
    values = {
        "title": f"The kernel {launch.name} of a plan of {plan.model} computes something else than it must",
        "name": name,
        "device": device_text(device),
        "variables": device.workaround("environment"),
        "differences": list(differences),
        "arrays": writer.arrays,
        "contents": writer.contents,
        "arguments": arguments,
        "global_size": ", ".join(map(str, source.global_size)),
        "local_size": ", ".join(map(str, source.local_size or ())),
        "options": " ".join(options),
        "byte_unit": any(option in options for option in device.workaround("option_of_byte_unit")),
        "entry": source.entry,
    }
    text = rendered(native_path() / "bundle" / "reproduction.c.jinja", values)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / f"{name}.c", text.encode())
        write_whole(folder / f"{name}.cl", source.text.encode())
    except OSError as error:
        raise ReproductionError(f"{folder}: the program cannot be written ({error.strerror or error})") from error
    return folder / f"{name}.c", folder / f"{name}.cl"


class _Writer:
    """Arguments as C, and the arrays that hold their contents."""

    def __init__(self) -> None:
        self.arrays: list[_Array] = []
        self.contents: list[_Contents] = []

    def argument(self, tensor: Stored, filling: Filling, probe: Probe, number: int) -> _Argument:
        """An argument of the kernel with what it holds before and, where it is an answer, afterwards."""
        dtype = storage_dtype(tensor.storage)
        if dtype.name not in _KINDS:
            raise ReproductionError(f"the tensor {tensor.name!r} holds {dtype.name}, which a C program does not have")
        image = tensor.layout.memory == "image"
        width, height = tensor.layout.image_size(tensor.type.shape) if image else (0, 0)
        answer = next((one for one in probe.answers if one.argument == number), None)
        return _Argument(
            name=tensor.name,
            element=_KINDS[dtype.name],
            elements=math.prod(memory_shape(tensor)),
            width=width,
            height=height,
            given="NULL" if filling.kind == UNSET else self._contents(_held(tensor, filling), f"given_{number}"),
            expected="NULL" if answer is None else self._contents(answer.rows, f"expected_{number}"),
            bound=repr(0.0 if answer is None else answer.bound),
        )

    def _contents(self, rows: Rows, name: str) -> str:
        words = np.ascontiguousarray(rows.different).view(f"u{rows.different.itemsize}").reshape(-1)
        different, codes = np.unique(words, return_inverse=True)
        few = different.size <= _MOST_CODES
        self._array(f"{name}_values", _WORDS[words.itemsize], different if few else words)
        if few:
            self._array(f"{name}_codes", "uint8_t", codes.reshape(-1))
        self._array(f"{name}_rows", "uint32_t", rows.numbers)
        self.contents.append(
            _Contents(
                name=name,
                values=f"{name}_values",
                codes=f"{name}_codes" if few else "NULL",
                rows=f"{name}_rows",
                width=rows.different.shape[1],
                count=rows.numbers.size,
            )
        )
        return f"&{name}"

    def _array(self, name: str, type_: str, values: np.ndarray) -> None:
        suffix = "u" if type_ in ("uint32_t", "uint64_t") else ""
        words = [f"{value}{suffix}" for value in values.tolist()]
        lines = (",".join(words[at : at + _IN_A_LINE]) for at in range(0, len(words), _IN_A_LINE))
        self.arrays.append(_Array(name=name, type=type_, text=",\n".join(lines)))


def _held(tensor: Stored, filling: Filling) -> Rows:
    if filling.kind == GIVEN:
        assert filling.rows is not None
        return filling.rows
    if tensor.packed is None:
        raise ReproductionError(f"the plan holds no values for the constant {tensor.name!r}")
    packed = signs(tensor.packed, filling.exponent) if filling.kind == SIGNS else tensor.packed
    held = packed.view(np.uint8) if packed.dtype == np.bool_ else packed
    return Rows.of(held, held.shape[-1] if held.ndim > 1 else max(1, held.size))
