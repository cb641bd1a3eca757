"""What became of each node of a model: which launches compute it, or why none does."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Literal

from smartmem_rules.plan.artefact import Plan
from smartmem_rules.plan.kernel.launch import Launch
from smartmem_rules.records import dataclass

Kind = Literal["computed", "view", "constant", "unfolded", "unneeded"]
"""`computed` by launches; a `view` that others read in place; a `constant` that was computed at import; `unfolded` into
the nodes of its body; `unneeded` by any output."""


@dataclass(frozen=True, slots=True)
class FileNode:
    """A node of an ONNX file.

    Attributes:
        is_needed: whether outputs of the model depend on it.
        has_body: whether nodes of a body or of a function stand for it.
        domain: of its operator, empty for ONNX's own.
        inputs: names of tensors, those that its bodies take from outside included.
    """

    operator: str
    is_needed: bool
    has_body: bool = False
    domain: str = ""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Fate:
    """What became of a node.

    Attributes:
        outcome: that in a sentence.
        launches: the numbers of those that compute parts of it.
    """

    node: str
    operator: str
    kind: Kind
    outcome: str
    launches: tuple[int, ...] = ()


class Fates:
    """The fates of the nodes of a plan's model."""

    def __init__(self, plan: Plan, file: Mapping[str, FileNode]) -> None:
        """Args:
        file: all nodes of the ONNX file by name; without them nothing is known of nodes that import computed.
        """
        self._known = plan.statistics.model.nodes
        self._file = file
        self._launches = plan.launches

    @cached_property
    def computed(self) -> Mapping[str, tuple[int, ...]]:
        """For each node that launches compute the numbers of these."""
        found: dict[str, list[int]] = {}
        for number, launch in enumerate(self._launches):
            for node in launch.origin:
                found.setdefault(node, []).append(number)
        return {node: tuple(numbers) for node, numbers in found.items()}

    def names(self) -> list[str]:
        """All nodes: those of the file in its order, then those that only the plan knows."""
        return list(dict.fromkeys([*self._file, *self._known, *self.computed]))

    def of(self, node: str) -> Fate:
        """The fate of one of them."""
        numbers = self.computed.get(node, ())
        in_file = self._file.get(node)
        operator = self._known.get(node) or (in_file.operator if in_file is not None else "")
        kind = self._kind(node, numbers, in_file)
        return Fate(
            node=node, operator=operator, kind=kind, outcome=self._sentence(node, kind, numbers), launches=numbers
        )

    def _kind(self, node: str, numbers: tuple[int, ...], in_file: FileNode | None) -> Kind:
        if numbers:
            return "computed"
        if in_file is not None and not in_file.is_needed:
            return "unneeded"
        if node in self._known:
            return "view"
        return "unfolded" if in_file is not None and in_file.has_body else "constant"

    def _sentence(self, node: str, kind: Kind, numbers: tuple[int, ...]) -> str:
        if kind == "computed":
            return _computed([self._launches[number] for number in numbers], node)
        return _WITHOUT_LAUNCH[kind]


_WITHOUT_LAUNCH: Mapping[Kind, str] = {
    "unneeded": "no output of the model depends on it: it was left out when the model was imported",
    "view": "no kernel computes it: its elements are read in place through index arithmetic",
    "constant": "its value depends on no element of an input: it was computed when the model was imported",
    "unfolded": "it was unfolded when the model was imported: the nodes of its body stand in its place",
}


def _computed(launches: list[Launch], node: str) -> str:
    if len(launches) > 1:
        return f"{len(launches)} kernels compute parts of it"
    (launch,) = launches
    others = len(set(launch.origin) - {node})
    return f"the kernel {launch.name} computes it {f'with {_others(others)}' if others else 'alone'}"


def _others(count: int) -> str:
    return f"{count} other{'' if count == 1 else 's'}"
