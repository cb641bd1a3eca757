"""Keeps an import within its limits while functions, loops and constants make it grow."""

from __future__ import annotations

from smartmem_rules.limits import Deadline, Limits
from smartmem_rules.tensor.instantiate import Instance
from smartmem_rules.tensor.primitives import storage_dtype
from smartmem_rules.tensor.ranges import largest, smallest
from smartmem_rules.tensor.types import TensorType


class Guard:
    """Counts what an import does."""

    def __init__(self, limits: Limits, any_extent: bool = False) -> None:
        """Args:
        any_extent: whether open extents may be as large as they like; tensors are then counted at their least.
        """
        self.limits = limits
        self._counted = smallest if any_extent else largest
        self._deadline = Deadline(limits)
        self._nodes = 0
        self._bytes = 0
        self._sized: set[int] = set()

    def node(self) -> None:
        """One more node is imported, of the file or of an unrolled body. Raises LimitError."""
        self._nodes += 1
        self.limits.check("nodes", self._nodes, "the graph with its loops unrolled")
        self._deadline.check("the import")

    def within(self, inputs: dict[str, TensorType]) -> dict[str, TensorType]:
        """The types of a model's inputs, compared with the limits before any definition computes with them.

        Raises:
            LimitError: an input has too many axes or elements.
        """
        for name, type_ in inputs.items():
            self.limits.check_shape([self._counted(extent) for extent in type_.shape], f"the input {name!r}")
        return inputs

    def instance(self, instance: Instance, what: str) -> None:
        """Compare all tensors that an instance defines with the limits; equal nodes share an instance.

        Raises:
            LimitError: a tensor has too many axes or elements.
        """
        if id(instance) in self._sized:
            return
        for type_ in (*instance.outputs, *(equation.type for equation in instance.equations)):
            self.limits.check_shape([self._counted(extent) for extent in type_.shape], what)
        self._sized.add(id(instance))

    def folded(self, instance: Instance) -> int:
        """What an instance defines is going to be computed; the bytes. Raises LimitError where all is too much."""
        size = sum(
            self._counted(equation.type.elements) * storage_dtype(equation.type.dtype).itemsize
            for equation in instance.equations
        )
        self._bytes += size
        self.limits.check("folded_bytes", self._bytes, "what is computed at import")
        return size
