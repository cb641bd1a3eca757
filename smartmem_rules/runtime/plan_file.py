"""Plans in files: a zip of one JSON document and the packed constants.

The constants are not compressed and begin at multiples of a page, so that a plan is loaded by mapping its file into
memory: a CPU device computes with the mapped pages themselves.
"""

from __future__ import annotations

import json
import mmap
import struct
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from smartmem_rules.errors import SmartmemError
from smartmem_rules.plan.artefact import Argument, Enqueue, Place, Plan, Slot, Source
from smartmem_rules.plan.kernel.launch import Launch, Recorded
from smartmem_rules.plan.kernel.model import Kernel, KernelSchedule, Layout, Stored
from smartmem_rules.statistics import Statistics
from smartmem_rules.tensor.extents import Dimension, extent_data, extent_of, is_symbolic
from smartmem_rules.tensor.primitives import storage_dtype
from smartmem_rules.tensor.types import TensorType
from smartmem_rules.whole_files import whole_file

FORMAT = "smartmem-plan"
VERSION = 5
SLACK = 64
"""Bytes that may be read behind the end of a constant of a loaded plan: vector loads reach over the last element."""
_DOCUMENT = "plan.json"
_CHUNK = 1 << 24
_PAGE = 4096
_LOCAL_HEADER = 30
_ZIP64_EXTRA = 20
_DAMAGE = (
    zipfile.BadZipFile, KeyError, TypeError, ValueError, IndexError, EOFError, NotImplementedError, struct.error
)  # fmt: skip
_PADDING_ID = 0xD935
"""The extra field that Android's zipalign fills up headers with."""


class PlanFileError(SmartmemError):
    """A file is no plan, is damaged, or is of another version; the message says which."""


def save_plan(plan: Plan, path: str | Path) -> None:
    """Write a plan, all of it or nothing.

    The index expressions of the kernels are left out: their OpenCL C texts are what runs.

    Raises:
        PlanFileError: the file cannot be written.
    """
    target = Path(path)
    try:
        with whole_file(target) as stream:
            write_plan(plan, stream)
    except OSError as error:
        raise PlanFileError(f"{target}: the plan cannot be written ({error.strerror or error})") from error


def write_plan(plan: Plan, stream: IO[bytes]) -> None:
    """Write what `save_plan` writes to a stream that can be read as well."""
    constants = {t.name: t.packed for t in plan.tensors.values() if t.packed is not None}
    entries = {name: f"constants/{number}.bin" for number, name in enumerate(constants)}
    # weights hardly compress, and an uncompressed file loads as fast as the disk reads
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        text = json.dumps(_document(plan, entries), allow_nan=False, default=_plain)
        archive.writestr(zipfile.ZipInfo(_DOCUMENT), text)
        for name, array in constants.items():
            with archive.open(_aligned(entries[name], stream.tell()), "w", force_zip64=True) as member:
                raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
                for at in range(0, raw.size, _CHUNK):
                    member.write(raw[at : at + _CHUNK].data)


def _aligned(name: str, at: int) -> zipfile.ZipInfo:
    """An entry that is written at a place of the file, its header filled up so that its data begin with a page."""
    info = zipfile.ZipInfo(name)
    padding = -(at + _LOCAL_HEADER + len(name.encode()) + _ZIP64_EXTRA + 4) % _PAGE
    info.extra = struct.pack("<HH", _PADDING_ID, padding) + bytes(padding)
    return info


def checksum(array: np.ndarray) -> int:
    """The sum of the bytes as 64-bit numbers, modulo 2**64: as fast as memory, and it sees every damaged byte."""
    raw = array.reshape(-1).view(np.uint8)
    whole = raw.size // 8 * 8
    total = int(np.add.reduce(raw[:whole].view(np.uint64), dtype=np.uint64)) if whole else 0
    return (total + int.from_bytes(raw[whole:].tobytes(), "little")) % 2**64


def _plain(value: Any) -> Any:
    if is_symbolic(value):
        return extent_data(value)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    return str(value)


def _document(plan: Plan, entries: Mapping[str, str]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "model": plan.model,
        "device": plan.device,
        "level": plan.level,
        "dtype": plan.dtype,
        "inputs": plan.inputs,
        "outputs": plan.outputs,
        "tensors": [_tensor_data(t, entries.get(t.name)) for t in plan.tensors.values()],
        "kernels": [_launch_data(launch) for launch in plan.launches],
        **_sources_data(plan.sources),
        "slots": [asdict(slot) for slot in plan.slots],
        "placement": {name: [place.slot, place.offset] for name, place in plan.placement.items()},
        "sizes": plan.sizes,
        "dimensions": [asdict(dimension) for dimension in plan.dimensions],
        "statistics": plan.statistics.data(),
    }


def _tensor_data(tensor: Stored, entry: str | None) -> dict[str, Any]:
    packed = tensor.packed
    return {
        "name": tensor.name,
        "type": asdict(tensor.type),
        "layout": asdict(tensor.layout),
        "role": tensor.role,
        "storage": tensor.storage,
        "shown": tensor.shown,
        "packed": None
        if packed is None
        else {
            "entry": entry,
            "dtype": packed.dtype.name,
            "shape": packed.shape,
            "sum": checksum(np.ascontiguousarray(packed)),
        },
    }


def _launch_data(launch: Launch) -> dict[str, Any]:
    kept = ("name", "form", "origin", "moves_only", "reads", "writes", "bytes_moved", "operations", "in_place")
    own = launch.schedule
    schedule = None if own is None else {"name": own.name, "template": own.template, "sizes": own.sizes()}
    return {key: getattr(launch, key) for key in kept} | {"schedule": schedule}


@dataclass(frozen=True, kw_only=True)
class SavedSchedule(KernelSchedule):
    """The sizes of a kernel of a loaded plan, whose text is there already."""

    saved: Mapping[str, int]

    def sizes(self) -> dict[str, int]:
        return dict(self.saved)


def _schedule(data: Mapping[str, Any] | None) -> SavedSchedule | None:
    if data is None:
        return None
    return SavedSchedule(name=data["name"], template=data["template"], saved=dict(data["sizes"]))


def _sources_data(sources: Sequence[Source]) -> dict[str, Any]:
    texts = list(dict.fromkeys(source.text for source in sources))
    number = {text: place for place, text in enumerate(texts)}
    return {
        "texts": texts,
        "sources": [{**asdict(source), "text": number[source.text]} for source in sources],
    }


def load_plan(path: str | Path) -> Plan:
    """Read a plan.

    Raises:
        PlanFileError: there is no such file, it is no plan, damaged or of another version.
    """
    file = Path(path)
    try:
        with open(file, "rb") as stream, zipfile.ZipFile(stream) as archive:
            document = json.loads(archive.read(_DOCUMENT))
            if not isinstance(document, dict) or document.get("format") != FORMAT:
                raise PlanFileError(f"{file}: this is no plan of smartmem")
            if document["version"] != VERSION:
                raise PlanFileError(
                    f"{file}: the plan has version {document['version']}, this program reads version {VERSION}; "
                    "optimize the model again"
                )
            return _plan(document, _Constants(archive, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)))
    except FileNotFoundError:
        raise PlanFileError(f"{file}: there is no such file") from None
    except OSError as error:
        raise PlanFileError(f"{file}: the file cannot be read ({error.strerror or error})") from error
    except _DAMAGE as error:
        raise PlanFileError(f"{file}: this is no plan or it is damaged; optimize the model again ({error})") from error


def is_plan_file(path: str | Path) -> bool:
    """Whether a file looks like a plan (any zip does): models never begin so."""
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:
        return False


class _Constants:
    """The constants of a plan's file, mapped into memory."""

    def __init__(self, archive: zipfile.ZipFile, mapped: mmap.mmap) -> None:
        self._archive = archive
        self._mapped = mapped

    def array(self, data: Mapping[str, Any]) -> np.ndarray:
        """A constant; its memory goes on for `SLACK` bytes, for which the zip's directory at the end has room."""
        info = self._archive.getinfo(data["entry"])
        name, extra = struct.unpack_from("<HH", self._mapped, info.header_offset + _LOCAL_HEADER - 4)
        start = info.header_offset + _LOCAL_HEADER + name + extra
        if info.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"{data['entry']} is compressed")
        reachable = np.frombuffer(self._mapped, np.uint8, info.file_size + SLACK, start)
        array = reachable[: info.file_size].view(storage_dtype(data["dtype"])).reshape(data["shape"])
        if checksum(array) != data["sum"]:
            raise ValueError(f"the checksum of {data['entry']} is another one")
        return array


def _plan(data: Mapping[str, Any], constants: _Constants) -> Plan:
    dimensions = {d["name"]: Dimension(d["name"], d["low"], d["high"]) for d in data["dimensions"]}
    tensors = [_stored(one, constants, dimensions) for one in data["tensors"]]
    plan = Plan(
        model=data["model"],
        device=data["device"],
        level=data["level"],
        dtype=data["dtype"],
        inputs=list(data["inputs"]),
        outputs=list(data["outputs"]),
        tensors={tensor.name: tensor for tensor in tensors},
        enqueues=[
            Enqueue(launch=_launch(kernel), source=_source(source, data["texts"], dimensions))
            for kernel, source in zip(data["kernels"], data["sources"], strict=True)
        ],
        slots=[Slot(s["memory"], s["bytes"], (s["size"][0], s["size"][1]), s["storage"]) for s in data["slots"]],
        placement={name: Place(slot, offset) for name, (slot, offset) in data["placement"].items()},
        sizes={name: {int(axis): count for axis, count in axes.items()} for name, axes in data["sizes"].items()},
        dimensions=tuple(dimensions.values()),
        statistics=Statistics.of(data["statistics"]),
    )
    used = [a.tensor for source in plan.sources for a in source.arguments] + plan.inputs + plan.outputs
    unknown = set(used) - set(plan.tensors)
    if unknown:
        raise ValueError(f"it uses tensors that it does not hold: {', '.join(sorted(unknown))}")
    return plan


def _shape(data: Sequence[Any], dimensions: Mapping[str, Dimension]) -> tuple[int, ...]:
    return tuple(extent_of(extent, dimensions) for extent in data)


def _stored(data: Mapping[str, Any], constants: _Constants, dimensions: Mapping[str, Dimension]) -> Stored:
    layout = data["layout"]
    packed = data["packed"]
    return Stored(
        name=data["name"],
        type=TensorType(data["type"]["dtype"], _shape(data["type"]["shape"], dimensions)),
        layout=Layout(layout["memory"], tuple(layout["order"]), layout["rows"], layout["inner"]),
        role=data["role"],
        storage=data["storage"],
        packed=None if packed is None else constants.array(packed),
        shown=None if data["shown"] is None else _shape(data["shown"], dimensions),
    )


def _launch(data: Mapping[str, Any]) -> Recorded:
    kernel = Kernel(
        name=data["name"],
        form=data["form"],
        origin=tuple(data["origin"]),
        moves_only=data["moves_only"],
        reads=tuple(data["reads"]),
        writes=tuple(data["writes"]),
        schedule=_schedule(data["schedule"]),
        operations=data["operations"],
    )
    return Recorded(kernel=kernel, in_place=dict(data["in_place"]), bytes_moved=data["bytes_moved"])


def _source(data: Mapping[str, Any], texts: list[str], dimensions: Mapping[str, Dimension]) -> Source:
    local = data["local_size"]
    return Source(
        entry=data["entry"],
        text=texts[data["text"]],
        arguments=tuple(Argument(a["tensor"], a["access"]) for a in data["arguments"]),
        global_size=_shape(data["global_size"], dimensions),
        local_size=None if local is None else tuple(local),
        options=tuple(data["options"]),
        dimensions=tuple(data["dimensions"]),
    )
