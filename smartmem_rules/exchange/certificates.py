"""Files of certificates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

from smartmem_rules.errors import SmartmemError
from smartmem_rules.whole_files import write_whole

FORMAT = "smartmem certificate"


class MadeFor(TypedDict):
    """What is said of a plan."""

    device: str
    level: str
    dtype: str


class GuardData(TypedDict):
    """A guard that holds, with what its names stand for."""

    guard: str
    values: dict[str, str]


class StepData(TypedDict, total=False):
    """A step: of which kind says the one of the first five keys that is there.

    Attributes:
        rule, eliminate: names of rules.
        compose, identity, value, at, under: terms by their names.
        match: the terms of a rewrite rule's left side.
        swapped: the numbers of those whose two operands are taken in the other order.
        uses: how often tensors are read, where guards ask.
        bound: what the names of the rule stand for.
        makes: the terms that the step makes.
    """

    rule: str
    eliminate: str
    compose: str
    identity: str
    value: str
    equation: str
    match: list[str]
    backward: bool
    swapped: list[int]
    uses: dict[str, int]
    at: str
    operand: int
    under: str
    map: Any
    sha256: str
    bound: dict[str, str | list[str]]
    guards: list[GuardData]
    makes: list[str]


ConstantData = TypedDict(
    "ConstantData", {"name": str, "is": str | None, "dtype": str, "shape": list[int], "sha256": str}, total=False
)
ConstantData.__doc__ = "A constant of the graph: the term whose elements it has, else only its type."


class NodeData(TypedDict, total=False):
    """A node of the graph; a view has an index map in place of attributes."""

    name: str
    operator: str
    operands: list[str | None]
    attributes: dict[str, object]
    map: Any
    outputs: list[str]
    origin: list[str]


class GraphData(TypedDict):
    """The graph that the steps lead to."""

    constants: list[ConstantData]
    nodes: list[NodeData]


class StageData(TypedDict):
    """What a kernel computes and keeps."""

    text: str
    name: str
    axes: list[str]
    value: Any


class StoreData(TypedDict, total=False):
    """What a kernel writes; of a kernel that cannot be shown only the tensor."""

    text: str
    tensor: str
    indices: list[Any]
    value: Any


class KernelData(TypedDict, total=False):
    """A kernel; `unshown` says why its stages cannot be shown."""

    name: str
    origin: list[str]
    loops: dict[str, int]
    stages: list[StageData]
    stores: list[StoreData]
    unshown: str


class GapData(TypedDict):
    """A node or a kernel that is not certified."""

    node: NotRequired[str]
    kernel: NotRequired[str]
    reason: str


class Certificate(TypedDict):
    """What a file holds. Whoever reads one that others wrote finds out whether it does."""

    format: str
    version: int
    model: str
    device: str
    level: str
    dtype: str
    steps: list[StepData]
    graph: GraphData
    stand_for: dict[str, str]
    kernels: list[KernelData]
    uncertified: list[GapData]


class CertifiedPlan(TypedDict):
    """A certificate whose steps all hold."""

    model: str
    steps: int
    rules: list[str]
    nodes: int
    certified: int
    kernels: int
    certified_kernels: int
    uncertified: list[GapData]


class CertificateFileError(SmartmemError):
    """A file is no certificate or cannot be written; the message says which and why."""


def read_certificate(path: str | Path) -> Certificate:
    """The certificate in a file.

    Raises:
        CertificateFileError: there is no such file, or it holds something else.
    """
    try:
        data = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise CertificateFileError(f"{path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise CertificateFileError(f"{path}: this is no certificate, or it is damaged ({error})") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise CertificateFileError(
            f"{path}: this is no certificate; `smartmem optimize MODEL --certificate FILE` writes one"
        )
    return cast("Certificate", data)


def write_certificate(text: str, path: str | Path) -> None:
    """Write a certificate; nothing is left behind where that fails.

    Raises:
        CertificateFileError: the file cannot be written.
    """
    try:
        write_whole(Path(path), text.encode())
    except OSError as error:
        raise CertificateFileError(f"{path}: the certificate cannot be written ({error.strerror or error})") from error
