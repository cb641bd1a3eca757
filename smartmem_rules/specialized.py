"""Models whose inputs' values, extents or kinds decide the shapes inside: a plan for each combination, made on demand.

A plan holds the shapes of all tensors.  Where a shape, a number of repetitions or an axis is an input of the model, an
input has open dimensions, or is a sequence or an optional value, there is no plan before the first run.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from smartmem_rules.arguments import ARRAYS, CALLED, EXTENTS, FILE, MODEL, SEED, check_kinds, takes, whole
from smartmem_rules.graph.errors import GraphError
from smartmem_rules.limits import MOST_VALUES
from smartmem_rules.logs import logger
from smartmem_rules.optimized import OptimizedPlan, optimize_now
from smartmem_rules.runtime.feeds import DEFAULT_SEED

if TYPE_CHECKING:
    import onnx

    from smartmem_rules.graph.fitting import Signature
    from smartmem_rules.graph.loading import ModelSource
    from smartmem_rules.plan.artefact import Plan
    from smartmem_rules.runtime.devices import Device
    from smartmem_rules.runtime.executor import Executor
    from smartmem_rules.runtime.feeds import Array
    from smartmem_rules.runtime.reference import Check

_LOG = logger(__name__)
MOST_PLANS = 16
"""Plans that are kept; the one that was not used for the longest time goes first."""


class SpecializedModel(OptimizedPlan):
    """A model with a plan for each kind of inputs that it was run with.

    What is asked of its plan (`kernels`, `explain`, `check` ...) is answered for the plan of the last run.

    Attributes:
        fixed: the inputs whose values decide the plan, as far as runs have shown it.
    """

    @takes(model=MODEL, most_plans=whole(1), make=CALLED.or_none())
    def __init__(
        self,
        model: ModelSource,
        most_plans: int = MOST_PLANS,
        make: Callable[[onnx.ModelProto], OptimizedPlan] | None = None,
        **options: Any,
    ) -> None:
        """Args:
        model: a path, the bytes of an ONNX file or a ModelProto.
        most_plans: how many plans are kept.
        make: makes a plan of a fitted model; by default `smartmem_rules.optimize`.
        options: arguments of `smartmem_rules.optimize`, without `dims`.

        Raises:
            GraphError: the model is damaged.
        """
        from smartmem_rules.graph.fitting import is_fitted  # start-up time
        from smartmem_rules.graph.loading import load_model  # start-up time
        from smartmem_rules.graph.weights import with_weights  # start-up time

        if "dims" in options:
            raise ValueError("dims are those of the inputs of each run; leave them out")
        self.model: onnx.ModelProto = with_weights(*load_model(model))
        self.fixed: tuple[str, ...] = ()
        self.is_fitted = is_fitted(self.model)
        self.debug = bool(options.get("debug", False))
        self.last_check = None
        self.reason = "the model has no plan before its first run: its inputs decide it"
        self._make = make or self._optimize
        self._options = options
        self._most = most_plans
        self._plans: OrderedDict[Signature, OptimizedPlan] = OrderedDict()
        self._given: Mapping[str, Any] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<model with {len(self._plans)} plans; inputs whose values decide: {', '.join(self.fixed) or 'none'}>"

    @property
    def last(self) -> OptimizedPlan:
        """The plan of the last run. Raises GraphError before the first one, and says which inputs decide it."""
        if not self._plans:
            raise GraphError(self.reason)
        return next(reversed(self._plans.values()))

    @property
    def plan(self) -> Plan:
        """The kernels, layouts and memory of the last run's plan. Raises GraphError before the first run."""
        return self.last.plan

    @property
    def device(self) -> Device | None:  # type: ignore[override]
        """The device of the last run's plan, None before the first run."""
        return self.last.device if self._plans else None

    def prepare(self, progress: Callable[[int, int], None] | None = None) -> Executor:
        """The last run's plan with its kernels built. Raises GraphError before the first run."""
        return self.last.prepare(progress)

    @takes(seed=SEED, dims=EXTENTS.or_none(), given=ARRAYS.or_none())
    def random_feeds(
        self,
        seed: int = DEFAULT_SEED,
        dims: Mapping[str, int] | None = None,
        given: Mapping[str, object] | None = None,
    ) -> dict[str, Array]:
        """Random inputs of the types that the last run's plan has; those whose values decide have to be given.

        Raises:
            GraphError: an input whose value decides is not given, and no run has had one.
        """
        from smartmem_rules.graph.fitting import declared_feeds  # start-up time

        arrays = {name: np.asarray(array) for name, array in (given or {}).items()}
        known = {**self._given, **arrays}
        deciding = {name: np.asarray(known[name]) for name in self.fixed if name in known}
        missing = [name for name in self.fixed if name not in known]
        if missing or not (self.is_fitted or self._plans):
            raise GraphError(f"{self.reason}\ngive values for {', '.join(missing) or 'all inputs'}")
        declared = declared_feeds(self.model) if self.is_fitted else {}
        plan = self.plan_for({**declared, **arrays, **deciding})[0] if self.is_fitted else self.last
        taken = {name: array for name, array in arrays.items() if name in plan.plan.inputs}
        return {**declared, **plan.random_feeds(seed, dims, taken), **deciding, **arrays}

    def check(
        self,
        model: ModelSource | None = None,
        seed: int = DEFAULT_SEED,
        tolerance: float | None = None,
        dims: Mapping[str, int] | None = None,
        rules: Sequence[str | Path] | None = None,
    ) -> Check:
        """Compare the last run's plan with the model at the values that decided it; see `OptimizedPlan.check`."""
        self.last_check = self.last.check(model, seed, tolerance, dims, rules)
        return self.last_check

    @property
    def plans(self) -> list[OptimizedPlan]:
        """The plans that are kept, the last used one at the end."""
        return list(self._plans.values())

    def run(self, feeds: Mapping[str, object], trace: str | Path | None = None) -> dict[str, Array]:
        """One inference; inputs of a new kind get a plan of their own first.

        Args:
            feeds: an array for each input, a list of arrays for a sequence, None for an empty optional value.
            trace: a file for the times of the run and of making its plan (docs/traces.md).

        Raises:
            TraceFileError: the file cannot be written.
            GraphError: an input is missing or of a wrong kind, or no rule covers something in the model.
            PlanError, BuildError, RunError: as `smartmem_rules.optimize` and `OptimizedPlan.run`.
        """
        check_kinds({"feeds": feeds, "trace": trace}, {"feeds": ARRAYS, "trace": FILE.or_none()})
        plan, left = self.plan_for(feeds)
        return plan.run({name: array for name, array in left.items() if name in plan.plan.inputs}, trace)

    def plan_ahead(self) -> OptimizedPlan | None:
        """The plan, where there is one for all inputs: every input is a tensor of known extents, and no value decides.

        Raises:
            GraphError, PlanError: no rule covers something in the model.
        """
        from smartmem_rules.graph.failures import UnknownValuesError  # start-up time
        from smartmem_rules.graph.fitting import declared_feeds, signature  # start-up time

        if not self.is_fitted:
            return None
        declared = declared_feeds(self.model)
        try:
            plan = self._make(self.model)
        except UnknownValuesError as unknown:
            with self._lock:
                self.fixed += self._deciding(unknown, declared)
                self.reason = str(unknown)
            return None
        with self._lock:
            self._plans[signature(declared, ())] = plan
        return plan

    def plan_for(self, feeds: Mapping[str, object]) -> tuple[OptimizedPlan, dict[str, Array]]:
        """The plan for inputs of this kind, and what of them it takes; `run` documents the errors."""
        from smartmem_rules.graph.failures import UnknownValuesError  # start-up time
        from smartmem_rules.graph.fitting import as_feed, fitted_model, signature  # start-up time

        given = {name: as_feed(value) for name, value in feeds.items()}
        with self._lock:
            self._given = given
            while True:
                fitted, left = fitted_model(self.model, given, self.fixed)
                key = signature(given, self.fixed)
                if key in self._plans:
                    self._plans.move_to_end(key)
                    return self._plans[key], left
                _LOG.info("inputs of a new kind: %s", key)
                try:
                    self._plans[key] = self._make(fitted)
                except UnknownValuesError as unknown:
                    self.fixed += self._deciding(unknown, given)
                    continue
                while len(self._plans) > self._most:
                    self._plans.popitem(last=False)
                return self._plans[key], left

    def _optimize(self, model: onnx.ModelProto) -> OptimizedPlan:
        return optimize_now(model, **self._options)

    def _deciding(self, unknown: Any, given: Mapping[str, Any]) -> tuple[str, ...]:
        """Further inputs from which the unknown tensors are computed. Raises the error again where there are none."""
        reached = sources(self.model, unknown.tensors)
        more = [name for name in given if name in reached and name not in self.fixed and _is_small(given[name])]
        if not more:
            raise GraphError(str(unknown)) from None
        return tuple(more)


def specialized_for(error: Exception, graph: Any, **options: Any) -> SpecializedModel | None:
    """The model that is planned on demand, where an error says that its inputs leave open what a plan has to know."""
    from smartmem_rules.graph.failures import UnknownValuesError  # start-up time
    from smartmem_rules.graph.fitting import run_inputs  # start-up time
    from smartmem_rules.graph.loading import OpenInputError  # start-up time
    from smartmem_rules.graph.model import Graph  # start-up time

    if isinstance(graph, Graph) or not isinstance(error, UnknownValuesError | OpenInputError):
        return None
    made = SpecializedModel(graph, **options)
    made.reason = str(error)
    if isinstance(error, UnknownValuesError):
        reached = sources(made.model, error.tensors)
        made.fixed = tuple(v.name for v in run_inputs(made.model) if v.name in reached and _may_be_small(v))
        if not made.fixed:
            return None
    return made


def _may_be_small(value: onnx.ValueInfoProto) -> bool:
    if not value.type.HasField("tensor_type"):
        return False
    count: int = math.prod(dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim)
    return count <= MOST_VALUES


def sources(model: onnx.ModelProto, tensors: Collection[str]) -> set[str]:
    """The tensors that some tensors are computed from."""
    from smartmem_rules.graph.loading import node_inputs  # start-up time

    producers = {output: node for node in model.graph.node for output in node.output}
    bodies = {f"{node.name or f'{node.op_type}_{place}'}/": node for place, node in enumerate(model.graph.node)}
    stack, seen = list(tensors), set(tensors)
    while stack:
        tensor = stack.pop()
        # a tensor inside of a body is named after the node that holds the body
        node = producers.get(tensor) or next((n for name, n in bodies.items() if tensor.startswith(name)), None)
        for name in () if node is None else node_inputs(node):
            if name not in seen:
                seen.add(name)
                stack.append(name)
    return seen


def _is_small(value: Any) -> bool:
    return isinstance(value, np.ndarray) and bool(value.size <= MOST_VALUES)
