"""A graph of PyTorch with a plan for each set of shapes and parameters that it meets."""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch

from smartmem_rules.logs import logger
from smartmem_rules.torch_backend.binding import BoundGraph, bind, evaluated
from smartmem_rules.torch_backend.constants import Constants, states_of
from smartmem_rules.torch_backend.errors import LeftToEagerWarning, RefusedError
from smartmem_rules.torch_backend.options import TorchOptions
from smartmem_rules.torch_backend.parts import Left, MixedGraph
from smartmem_rules.torch_backend.planned import PlannedGraph

MOST_PLANS = 16
"""Plans that are kept of a graph; the one that was not used for the longest time goes first."""
_REPLANS = 2
"""How often parameters may change before they become inputs of the plans."""
_SHOWN = 12
_LOG = logger(__name__)


class _Specialized:
    """A graph for one set of shapes and parameters."""

    def __init__(self, module: Any, inputs: Sequence[Any], constants: Constants, options: TorchOptions) -> None:
        self.constants = constants
        self._bound: BoundGraph = bind(module, inputs, constants.tensors)
        given = self._bound.given(inputs)
        self.left: list[Left] = []
        self.plans: list[PlannedGraph] = []
        if not self._bound.results:
            self._compute: Callable[[Sequence[Any]], Sequence[Any]] = list  # nothing is computed
            return
        try:
            whole = PlannedGraph(self._bound.module, given, self._bound.results, options)
            self._compute, self.plans = whole, [whole]
        except RefusedError as error:
            _LOG.info("a graph is not planned as a whole: %s", error)
            mixed = MixedGraph(self._bound.module, given, options)
            self._compute, self.plans, self.left = mixed, mixed.plans, mixed.left

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        return self._bound.outputs(inputs, self._compute(self._bound.given(inputs)))


class CompiledGraph:
    """Computes a functional graph of ATen operators; what is new about its inputs makes a new plan."""

    def __init__(self, module: Any, constants: Collection[int], options: TorchOptions) -> None:
        """Args:
        module: a functional graph of ATen operators.
        constants: the places of the inputs that are parameters.
        """
        self._module = module
        self._constants = set(constants)
        self._options = options
        self._plans: OrderedDict[object, _Specialized] = OrderedDict()
        self._changes: dict[int, int] = {}
        self._refused: str | None = None
        self._lock = threading.Lock()

    @property
    def plans(self) -> list[PlannedGraph]:
        """The plans that are kept, the last used ones at the end."""
        return [plan for one in self._plans.values() for plan in one.plans]

    def __call__(self, *inputs: Any) -> list[Any]:
        """The outputs of the graph for its inputs.

        Raises:
            RunError: the device refuses a kernel.
        """
        if self._refused is None:
            with self._lock:
                found = self._found(inputs)
            if found is not None:
                with torch.no_grad():
                    return found.run(inputs)
        values = evaluated(self._module, inputs)
        outputs: list[Any] = values[next(node for node in self._module.graph.nodes if node.op == "output")]
        return outputs

    def _found(self, inputs: Sequence[Any]) -> _Specialized | None:
        """The plan for inputs like these; None where PyTorch computes the graph."""
        key = self._key(inputs)
        known = self._plans.get(key)
        if known is not None and known.constants.are_unchanged():
            self._plans.move_to_end(key)
            return known
        self._note_changes(inputs, [] if known is None else [key])
        constants = Constants({place: inputs[place] for place in self._constants})
        try:
            made = _Specialized(self._module, inputs, constants, self._options)
        except RefusedError as error:
            self._refused = str(error)
            warnings.warn(f"PyTorch computes a whole graph: {error}", LeftToEagerWarning, stacklevel=2)
            return None
        self._plans[self._key(inputs)] = made
        _warn(made.left)
        while len(self._plans) > MOST_PLANS:
            self._plans.popitem(last=False)
        return made

    def _note_changes(self, inputs: Sequence[Any], outdated: Collection[object]) -> None:
        """Drop the plans of parameters that were written since; what is written often is a parameter no longer."""
        written: set[int] = set()
        for key, plan in list(self._plans.items()):
            changed = self._constants if key in outdated else plan.constants.rewritten(inputs)
            if changed:
                del self._plans[key]
            written |= changed
        for place in written:
            self._changes[place] = self._changes.get(place, 0) + 1
        self._constants -= {place for place, count in self._changes.items() if count >= _REPLANS}

    def _key(self, inputs: Sequence[Any]) -> object:
        others = tuple(
            (value.dtype, value.shape, value.stride()) if isinstance(value, torch.Tensor) else value
            for place, value in enumerate(inputs)
            if place not in self._constants
        )
        return others, states_of([inputs[place] for place in self._constants])


def _warn(left: Sequence[Left]) -> None:
    """Say which operators PyTorch computes."""
    if not left:
        return
    lines = list(dict.fromkeys(map(str, left)))
    rest = f"\n  and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    text = "".join(f"\n  {line}" for line in lines[:_SHOWN])
    warnings.warn(f"PyTorch computes these operators itself:{text}{rest}", LeftToEagerWarning, stacklevel=2)
