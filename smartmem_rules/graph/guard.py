"""Keeps an import within its limits while functions, loops and constants make it grow."""

from __future__ import annotations

from smartmem_rules.limits import Deadline, Limits
from smartmem_rules.tensor.instantiate import Instance
from smartmem_rules.tensor.primitives import storage_dtype
from smartmem_rules.tensor.ranges import largest
from smartmem_rules.tensor.types import TensorType


class Guard:
    """Counts what an import does."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
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
            self.limits.check_shape([largest(extent) for extent in type_.shape], f"the input {name!r}")
        return inputs

    def instance(self, instance: Instance, what: str) -> None:
        """Compare all tensors that an instance defines with the limits; equal nodes share an instance.

        Raises:
            LimitError: a tensor has too many axes or elements.
        """
        if id(instance) in self._sized:
            return
        for type_ in (*instance.outputs, *(equation.type for equation in instance.equations)):
            self.limits.check_shape([largest(extent) for extent in type_.shape], what)
        self._sized.add(id(instance))

    def folded(self, instance: Instance) -> None:
        """What an instance defines is about to be computed. Raises LimitError where that takes too much memory."""
        self._bytes += sum(
            largest(equation.type.elements) * storage_dtype(equation.type.dtype).itemsize
            for equation in instance.equations
        )
        self.limits.check("folded_bytes", self._bytes, "what is computed at import")
