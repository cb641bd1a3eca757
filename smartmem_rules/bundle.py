"""Plans as programs in C: the plan, libsmartmem, a `main.c` for this very model, and how to build them."""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from smartmem_rules.errors import SmartmemError
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
        plan_bytes: the size of the plan.
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


def write_bundle(plan: OptimizedPlan, folder: Path, single_file: bool = False, binaries: bool = False) -> Bundle:
    """Write a bundle, all of it or nothing.

    Args:
        folder: is made; it may be there if it is empty.
        single_file: the plan becomes a C file, so that the program needs no other file.
        binaries: the plan has its programs as this device's driver compiles them, too.

    Raises:
        BundleError: the folder is not empty, or cannot be written.
        PlanFileError: the plan cannot be written.
    """
    target = folder.resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BundleError(f"{folder}: there is something already; name a folder that is empty or not there")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as made:
            inside = Path(made) / "bundle"
            inside.mkdir()
            size = _fill(plan, inside, single_file, binaries)
            files = tuple(sorted(path.name for path in inside.iterdir() if path.is_file()))
            inside.replace(target)
    except OSError as error:
        raise BundleError(f"{folder}: the bundle cannot be written ({error.strerror or error})") from error
    found = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    return Bundle(folder=folder, files=files, plan_bytes=size, compiler=found)


def _fill(plan: OptimizedPlan, folder: Path, single_file: bool, binaries: bool) -> int:
    """Write all files into a folder; gives the size of the plan."""
    native = native_path()
    name = re.sub(_NOT_IN_FILES, "_", plan.plan.model).lstrip(".-") or "model"
    file = folder / f"{name}.plan"
    plan.save(file, binaries)
    size = file.stat().st_size
    if single_file:
        with open(folder / _EMBEDDED, "w", encoding="ascii") as source, open(file, "rb") as data:
            _embed(data, size, source)
        file.unlink()
    shutil.copytree(native / "c", folder / "libsmartmem")
    for copied in _COPIED:
        shutil.copy(native / "bundle" / copied, folder / copied)
    values = _values(plan.plan, name, file.name, single_file)
    for one in _MADE:
        (folder / one).write_text(rendered(native / "bundle" / f"{one}.jinja", values), "utf-8")
    return size


def _values(plan: Plan, name: str, file: str, embedded: bool) -> dict[str, Any]:
    """What the templates are given."""
    counts = {count for axes in plan.sizes.values() for count in axes.values()}
    inputs = [_border(plan, one) for one in plan.inputs]
    shapes = [plan.tensors[one].type.shape for one in plan.inputs]
    return {
        "model": plan.model,
        "target": plan.device,
        "level": plan.level,
        "dtype": plan.dtype,
        "project": re.sub(r"\W", "_", name),
        "plan": file,
        "embedded": embedded,
        "inputs": inputs,
        "outputs": [_border(plan, one) for one in plan.outputs if one not in counts],
        "launches": len(plan.enqueues),
        "example": " ".join(f"'{one.name}={re.sub(_NOT_IN_FILES, '_', one.name)}.npy'" for one in inputs),
        "needs_shape": any(is_symbolic(extent) for shape in shapes for extent in shape),
    }


def _border(plan: Plan, name: str) -> _Border:
    tensor = plan.tensors[name]
    shape = tensor.type.shape if tensor.shown is None else tensor.shown
    return _Border(name=name, type=f"{tensor.type.dtype}{shape_text(shape)}")


def rendered(template: Path, values: dict[str, Any]) -> str:
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


def _embed(data: IO[bytes], size: int, source: IO[str]) -> None:
    """A plan as an array in C: text literals, which compilers take much faster than lists of numbers."""
    source.write("#include <stddef.h>\n\n")
    source.write(f"const size_t plan_bytes = {size}u;\n")
    source.write(f"_Alignas({_PAGE}) const unsigned char plan_data[{size} + 1] =")
    while chunk := data.read(_CHUNK):
        digits = [48 <= byte < 58 for byte in chunk[1:]] + [True]
        source.write('\n"' + "".join(map(_escaped, chunk, digits)) + '"')
    source.write(";\n")
