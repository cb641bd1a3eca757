"""The results that the gallery shows: taken from what other commands wrote, and kept in one file."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

LEVELS = ("none", "dnnfusion", "eliminate", "layout", "smartmem")
TOOLS = {"input": "as exported", "smartmem": "smartmem", "onnxsim": "onnxsim", "onnxslim": "OnnxSlim"}
FORMAT = 1


class ResultsError(Exception):
    """A file holds no results that the gallery knows; the message says which."""


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A model at a level, without a device: kernels of one inference, and bytes of its intermediate tensors."""

    model: str
    level: str
    operators: int
    kernels: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Milliseconds of one inference by our engine at a level, or by another system."""

    model: str
    system: str
    median_ms: float
    min_ms: float
    max_ms: float
    runs: int

    @property
    def is_level(self) -> bool:
        return self.system in LEVELS


@dataclass(frozen=True, kw_only=True)
class Simplified:
    """What a tool made of a model, or the model itself (`input`).

    Attributes:
        milliseconds: of ONNX Runtime with the result, and `to_input`, their ratio to those of the model itself; None
            where they were not taken.
        seconds: that the tool took, with `kilobytes` of memory; None for the model itself.
        right: whether the result computes the same.
    """

    model: str
    tool: str
    nodes: int
    bytes: int
    milliseconds: float | None
    to_input: float | None
    seconds: float | None
    kilobytes: int | None
    right: bool


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where results of one kind come from."""

    command: str
    day: str
    processor: str
    cores: int
    note: str

    def __str__(self) -> str:
        note = f", {self.note}" if self.note else ""
        return f"{self.command} on {self.day}, {self.cores} cores of {self.processor}{note}"


@dataclass(frozen=True, kw_only=True)
class Results:
    """All that the gallery shows; the origins are by kind: `planned`, `measured`, `simplified`."""

    planned: tuple[Planned, ...] = ()
    measured: tuple[Measured, ...] = ()
    simplified: tuple[Simplified, ...] = ()
    origins: Mapping[str, Origin] = field(default_factory=dict)

    def with_file(self, path: Path, note: str) -> Results:
        """These results, and those of a file that `figures.py`, `smartmem bench` or `simplify.py` wrote.

        Raises:
            ResultsError: it holds none of them.
        """
        kind, command, rows = _read(path)
        there = {(row.model, getattr(row, _PARTS[kind])): row for row in (*getattr(self, kind), *rows)}
        origins = {**self.origins, kind: _origin_here(command, note)}
        kept: dict[str, Any] = {kind: tuple(there[key] for key in sorted(there)), "origins": origins}
        return replace(self, **kept)

    def save(self, path: Path) -> None:
        """Write the results, a line for each."""
        origins = {kind: asdict(origin) for kind, origin in self.origins.items()}
        lines = [f' "format": {FORMAT}', f' "origins": {json.dumps(origins, indent=1)}']
        for kind in _PARTS:
            rows = ",\n  ".join(json.dumps(asdict(row)) for row in getattr(self, kind))
            lines.append(f' "{kind}": [\n  {rows}\n ]')
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


_PARTS = {"planned": "level", "measured": "system", "simplified": "tool"}
"""What makes a result of each kind another one, besides its model."""


def load(path: Path) -> Results:
    """Read what `save` wrote; nothing where there is no such file.

    Raises:
        ResultsError: another version wrote it.
    """
    if not path.exists():
        return Results()
    data = json.loads(path.read_text("utf-8"))
    if data.get("format") != FORMAT:
        raise ResultsError(f"{path}: results of another version ({data.get('format')}, this is {FORMAT})")
    return Results(
        planned=tuple(Planned(**row) for row in data["planned"]),
        measured=tuple(Measured(**row) for row in data["measured"]),
        simplified=tuple(Simplified(**row) for row in data["simplified"]),
        origins={kind: Origin(**origin) for kind, origin in data["origins"].items()},
    )


def _read(path: Path) -> tuple[str, str, list[Any]]:
    """The kind of the results in a file, the command that made them, and the results."""
    try:
        text = path.read_text("utf-8")
        if path.suffix == ".jsonl":
            return (
                "planned",
                "python bench/figures.py kernels memory",
                list(_planned(map(json.loads, text.splitlines()))),
            )
        data = json.loads(text)
        if isinstance(data, dict) and "results" in data:
            return "measured", "smartmem bench --levels all --against SYSTEM", list(_measured(data["results"]))
        return "simplified", "python bench/simplify.py --latency 31", list(_simplified(data))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ResultsError(
            f"{path}: these are no results of figures.py --save (.jsonl), smartmem bench --json or simplify.py --json "
            f"({type(error).__name__}: {error})"
        ) from error


def _planned(lines: Iterable[Any]) -> Iterator[Planned]:
    for (model, level, *_), one in lines:
        size = int(one["memory"]["reused"])
        yield Planned(model=model, level=level, operators=one["operators"], kernels=one["kernels"], bytes=size)


def _measured(rows: Iterable[Mapping[str, Any]]) -> Iterator[Measured]:
    for row in rows:
        if row["median_ms"] is not None:
            times = {key: float(row[key]) for key in ("median_ms", "min_ms", "max_ms")}
            yield Measured(model=row["model"], system=row["level"] or row["peer"], runs=row["runs"], **times)


def _simplified(models: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Iterator[Simplified]:
    for model, tools in models.items():
        for tool in TOOLS:
            one = tools.get(tool, {})
            if "nodes" in one:
                yield Simplified(
                    model=model,
                    tool=tool,
                    nodes=one["nodes"],
                    bytes=one["bytes"],
                    milliseconds=one.get("milliseconds"),
                    to_input=one.get("to_input"),
                    seconds=one.get("seconds"),
                    kilobytes=one.get("kilobytes"),
                    right="wrong" not in one,
                )


def _origin_here(command: str, note: str) -> Origin:
    return Origin(
        command=command, day=date.today().isoformat(), processor=_processor(), cores=os.cpu_count() or 1, note=note
    )


def _processor() -> str:
    """The processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
