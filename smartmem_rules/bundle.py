"""Plans as programs in C: the plans, libsmartmem, a `main.c` for this very model, and how to build them."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from smartmem_rules.errors import SmartmemError
from smartmem_rules.records import dataclass
from smartmem_rules.resources import native_path
from smartmem_rules.tensor.extents import is_symbolic, shape_text

if TYPE_CHECKING:
    from smartmem_rules.optimized import OptimizedPlan
    from smartmem_rules.plan.artefact import Plan

_COPIED = ("npy.c", "npy.h")
_MADE = ("main.c", "CMakeLists.txt", "README.md")
_EMBEDDED = "plan_data.c"
_NOT_IN_FILES = r"[^\w.-]"
_PAGE = 4096
_CHUNK = 1 << 16
_ESCAPES = {ord('"'): '\\"', ord("\\"): "\\\\", ord("?"): "\\?"}


class BundleError(SmartmemError):
    """A bundle cannot be written; the message says why."""


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """What was written.

    Attributes:
        files: in the folder, but for those of the library.
        plan_bytes: the size of the plans, of which each has the weights for itself.
        compiler: the C compiler of this computer; None where there is none, and the bundle has to be built elsewhere.
    """

    folder: Path
    files: tuple[str, ...]
    plan_bytes: int
    compiler: str | None


@dataclass(frozen=True, kw_only=True)
class _Border:
    """An input or output, for people."""

    name: str
    type: str


@dataclass(frozen=True, kw_only=True)
class _PlanFile:
    """A plan of a bundle: the name of its file, its bytes, and the profile that it was made for."""

    file: str
    bytes: int
    target: str


def write_bundle(
    plans: Sequence[OptimizedPlan], folder: Path, single_file: bool = False, binaries: bool = False
) -> Bundle:
    """Write a bundle, all of it or nothing.

    Args:
        plans: of one model; the program takes the one that is for its device. Each is a file with weights of its own.
        folder: is made; it may be there if it is empty.
        single_file: the plans become a C file, so that the program needs no other file.
        binaries: the plans have their programs as this device's driver compiles them, too.

    Raises:
        BundleError: two plans are for one profile, the folder is not empty, or cannot be written.
        PlanFileError: a plan cannot be written.
    """
    twice = [target for target, count in Counter(one.plan.device for one in plans).items() if count > 1]
    if twice:
        raise BundleError(f"two plans are for devices of the profile {twice[0]}; name one of them")
    target = folder.resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BundleError(f"{folder}: there is something already; name a folder that is empty or not there")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as made:
            inside = Path(made) / "bundle"
            inside.mkdir()
            size = _fill(plans, inside, single_file, binaries)
            files = tuple(sorted(path.name for path in inside.iterdir() if path.is_file()))
            inside.replace(target)
    except OSError as error:
        raise BundleError(f"{folder}: the bundle cannot be written ({error.strerror or error})") from error
    found = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    return Bundle(folder=folder, files=files, plan_bytes=size, compiler=found)


def _fill(plans: Sequence[OptimizedPlan], folder: Path, single_file: bool, binaries: bool) -> int:
    """Write all files into a folder; gives the size of the plans."""
    native = native_path()
    name = re.sub(_NOT_IN_FILES, "_", plans[0].plan.model).lstrip(".-") or "model"
    written = []
    for number, plan in enumerate(plans, 1):
        target = re.sub(_NOT_IN_FILES, "_", plan.plan.device)
        file = folder / (f"{name}-{target}.plan" if len(plans) > 1 else f"{name}.plan")
        plan.save(file, binaries)
        written.append(_PlanFile(file=file.name, bytes=file.stat().st_size, target=plan.plan.device))
        if single_file:
            with open(folder / _EMBEDDED, "a", encoding="ascii") as source, open(file, "rb") as data:
                _embed(data, number, written[-1].bytes, source)
            file.unlink()
    shutil.copytree(native / "c", folder / "libsmartmem")
    for copied in _COPIED:
        shutil.copy(native / "bundle" / copied, folder / copied)
    values = _values([one.plan for one in plans], name, written, single_file)
    for one in _MADE:
        (folder / one).write_text(rendered(native / "bundle" / f"{one}.jinja", values), "utf-8")
    return sum(one.bytes for one in written)


def _values(plans: Sequence[Plan], name: str, files: Sequence[_PlanFile], embedded: bool) -> dict[str, Any]:
    """What the templates are given."""
    plan = plans[0]
    inputs = [_border(plan, one) for one in plan.inputs]
    shapes = [plan.tensors[one].type.shape for one in plan.inputs]
    return {
        "model": plan.model,
        "target": plan.device,
        "level": plan.level,
        "dtype": plan.dtype,
        "project": re.sub(r"\W", "_", name),
        "plans": files,
        "embedded": embedded,
        "inputs": inputs,
        "outputs": [_border(plan, one) for one in plan.outputs if one not in plan.told],
        "launches": max(len(one.enqueues) for one in plans),
        "example": " ".join(f"'{one.name}={re.sub(_NOT_IN_FILES, '_', one.name)}.npy'" for one in inputs),
        "needs_shape": any(is_symbolic(extent) for shape in shapes for extent in shape),
    }


def _border(plan: Plan, name: str) -> _Border:
    tensor = plan.tensors[name]
    shape = tensor.type.shape if tensor.shown is None else tensor.shown
    return _Border(name=name, type=f"{tensor.type.dtype}{shape_text(shape)}")


def rendered(template: Path, values: dict[str, object]) -> str:
    """A template of C or text with values."""
    import jinja2  # start-up time

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters["comment"] = _in_comment
    environment.filters["string"] = _in_string
    return environment.from_string(template.read_text("utf-8")).render(values)


def _in_comment(text: str) -> str:
    """A text that ends no comment of C and has one line."""
    return re.sub(r"[\x00-\x1f\x7f]", " ", text).replace("*/", "* /").replace("\\", "/")


def _in_string(text: str) -> str:
    """A text inside of quotes of C."""
    return "".join(_escaped(byte, True) for byte in text.encode("utf-8", "surrogatepass"))


def _escaped(byte: int, digit_follows: bool) -> str:
    if byte in _ESCAPES:
        return _ESCAPES[byte]
    if 32 <= byte < 127:
        return chr(byte)
    return f"\\{byte:03o}" if digit_follows else f"\\{byte:o}"


def _embed(data: IO[bytes], number: int, size: int, source: IO[str]) -> None:
    """A plan as an array in C: text literals, which compilers take much faster than lists of numbers."""
    source.write(f"_Alignas({_PAGE}) const unsigned char plan_data_{number}[{size} + 1] =")
    while chunk := data.read(_CHUNK):
        digits = [48 <= byte < 58 for byte in chunk[1:]] + [True]
        source.write('\n"' + "".join(map(_escaped, chunk, digits)) + '"')
    source.write(";\n")
