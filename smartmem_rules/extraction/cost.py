"""What an e-node costs on a device: bytes moved, launches, arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from smartmem_rules.egraph.model import CONSTANT, IMPORTED, INPUT, OUT, EClass, ENode
from smartmem_rules.errors import SmartmemError
from smartmem_rules.graph.model import VIEW
from smartmem_rules.language.blocks.device import Device
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.costs import own_costs
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported, Value
from smartmem_rules.tensor.expr import Apply, Equation, Expr, Reduce, Select, TensorType, children
from smartmem_rules.tensor.primitives import storage_dtype
from smartmem_rules.tensor.ranges import largest

SIMPLE = frozenset({
    "add", "sub", "mul", "neg", "abs", "min", "max", "select", "fma", "cast",
    "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not",
})  # fmt: skip
"""Primitives that take one operation; all others count as `special_operations` of the device."""
VIEW_COST = 1.0
"""Nanoseconds: views are free, but of equal forms the one with fewer views is to be read by people."""


class CostError(SmartmemError):
    """What an operator says that it costs cannot be computed."""


@dataclass(frozen=True)
class CostModel:
    """Nanoseconds of an application by itself, as one kernel.

    Attributes:
        bandwidth: bytes a nanosecond (GB/s).
        launch: nanoseconds of one kernel launch.
        peak: scalar operations a nanosecond (GFLOP/s).
        special: operations that an elementary function counts as.
        count: the number that an extent counts as.
    """

    bandwidth: float
    launch: float
    peak: float
    special: int
    count: Callable[[int], int] = largest

    @staticmethod
    def of(device: Device) -> CostModel:
        """The costs of a device, by the bandwidth of the memory that it prefers."""
        memory, compute = device.memory, device.compute
        bandwidth = memory.texture_bandwidth if device.prefers == "image" else memory.global_bandwidth
        return CostModel(
            bandwidth=bandwidth, launch=compute.launch, peak=compute.peak, special=compute.special_operations
        )

    def cost(
        self,
        operands: Sequence[TensorType | None],
        equations: Sequence[Equation],
        outputs: int,
        own: Mapping[str, float] | None = None,
    ) -> float:
        """The cost of computing the equations over the operands; `own` is what the operator itself says."""
        given = own or {}
        moved: float = sum(size_in_bytes(o, self.count) for o in operands if o is not None)
        written = [e for e in equations if e.tensor.startswith("%")][:outputs]
        moved += sum(size_in_bytes(e.type, self.count) for e in written)
        work = sum(operations(e.body, self.special, self.count) * self.count(e.type.elements) for e in equations)
        moved, work = given.get("bytes", moved), given.get("operations", work)
        return given.get("launches", 1.0) * self.launch + moved / self.bandwidth + work / self.peak


def size_in_bytes(type_: TensorType, count: Callable[[int], int] = largest) -> int:
    return count(type_.elements) * storage_dtype(type_.dtype).itemsize


def operations(expr: Expr, special: int, count: Callable[[int], int] = largest) -> float:
    """Scalar operations for one element.

    Args:
        special: what an elementary function counts as.
        count: the number that an extent counts as.
    """
    match expr:
        case Apply(function=function):
            own = 1 if function in SIMPLE else special
            return own + sum(operations(c, special, count) for c in children(expr))
        case Reduce(variables=variables, body=body):
            return math.prod(count(v.extent) for v in variables) * (1 + operations(body, special, count))
        case Select(then=then, otherwise=otherwise):
            return 1 + max(operations(then, special, count), operations(otherwise, special, count))
        case _:
            return 0


def node_cost(node: ENode, classes: Mapping[int, EClass], instances: Instances, model: CostModel) -> float | None:
    """The cost of an e-node by itself, None where it cannot be built.

    Raises:
        CostError: what the operator says that it costs is no number from zero on.
    """
    if node.operator in (INPUT, CONSTANT, OUT):
        return 0.0
    if node.operator == VIEW:
        return VIEW_COST
    operands = operand_types(node, classes)
    if node.operator == IMPORTED:
        return model.launch
    try:
        attributes: dict[str, Value] = dict(node.attributes)  # type: ignore[arg-type]
        instance = instances.get(node.operator, operands, attributes, node.outputs)
    except Unsupported:
        return None
    try:
        own = own_costs(instance, operands, instances.base.functions)
    except (DefinitionError, Unsupported) as failure:
        raise CostError(f"{node.operator} at {', '.join(map(str, operands))}: {failure}") from failure
    return model.cost(operands, instance.equations, node.outputs, own)


def operand_types(node: ENode, classes: Mapping[int, EClass]) -> list[TensorType | None]:
    types: list[TensorType | None] = []
    for child in node.children:
        meta = classes[child].meta if child >= 0 else None
        types.append(None if meta is None else meta.type)
    return types
