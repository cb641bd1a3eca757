"""Control flow whose course is known at import: choices, loops and scans become the nodes of their bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

import numpy as np
import onnx
from onnx import helper

from smartmem_rules.graph.expansion.bodies import MOST_STEPS, Bodies
from smartmem_rules.graph.expansion.courses import Courses
from smartmem_rules.graph.expansion.forms import (
    body_inputs,
    branches_of,
    loop_body,
    scan_body,
    scanned_inputs,
)
from smartmem_rules.graph.expansion.randomness import DOMAIN
from smartmem_rules.graph.expansion.scans import Scans
from smartmem_rules.graph.matching import Explained, NeedsConstant
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import Unsupported
from smartmem_rules.tensor.extents import shape_text
from smartmem_rules.tensor.primitives import storage_dtype
from smartmem_rules.tensor.ranges import largest


@dataclass
class _Course:
    """How a loop goes.

    Attributes:
        decided: the tensor that says whether there is a first step.
        going: whether there is a next step for all that is known.
        most: the number of steps after which it ends in any case; None: there is none that is known.
        limit: the same as a scalar tensor, where it is computed.
        live: what says while the model runs whether there is a next step.
        steps: for every step so far the tensor that says whether it is taken, or nothing where it always is.
        unended: whether it may take more steps than are unrolled.
    """

    decided: str
    going: bool = True
    most: int | None = None
    limit: str = ""
    live: str = ""
    steps: list[str] = field(default_factory=list)
    unended: bool = False

    @property
    def counted(self) -> bool:
        """Whether the number of steps depends on data."""
        return self.unended or any(self.steps)


@dataclass(frozen=True)
class ControlFlow:
    """Unfolds nodes with bodies into an import.

    Attributes:
        sized: notes that an axis of a tensor has as many elements as a scalar tensor says.
        courses: what is known of the loops so far.
        most_steps: for how many a loop is unrolled whose end depends on data.
        opens: whether extents that depend on data become dimensions of the graph.
    """

    bodies: Bodies
    sized: Callable[[str, int, str], None]
    courses: Courses
    most_steps: int
    opens: bool = False

    def unfold(self, node: onnx.NodeProto, name: str) -> None:
        """Import what the node does.

        Raises:
            NeedsConstant: its course depends on a tensor that is not known.
            Unsupported: it takes too many steps, or is of a kind that cannot be unfolded.
        """
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        match node.op_type:
            case "If":
                self._choice(node, name, branches_of(node, attributes))
            case "Loop":
                self._loop(node, name, loop_body(node, attributes))
            case "Scan":
                scanned = scanned_inputs(attributes)
                body = scan_body(node, attributes, scanned)
                scans = Scans(self.bodies)
                unrolled = scans.unrolled if len(node.input) == len(body_inputs(body)) else scans.of_batches
                unrolled(node, name, attributes, body)
            case _:
                raise Unsupported("an operator with subgraphs that cannot be unrolled")

    def call(self, node: onnx.NodeProto, name: str, body: onnx.GraphProto) -> None:
        """Import a body in the node's place."""
        given = dict(zip([value.name for value in body.input], node.input, strict=False))
        self.bodies.name_outputs(self.bodies.body(body, f"{name}/", given), node.output)

    def _choice(self, node: onnx.NodeProto, name: str, branches: Sequence[onnx.GraphProto]) -> None:
        condition = node.input[0]
        if condition in self.bodies.values:
            taken = branches[0] if self.bodies.only(condition) else branches[1]
            self.bodies.name_outputs(self.bodies.body(taken, f"{name}/", {}), node.output)
            return
        # bodies have no effects: both can be computed, and the results chosen from
        both: list[list[str]] = []
        for number, branch in enumerate(branches):
            with self.courses.within(condition, number == 0):
                both.append(self.bodies.body(branch, f"{name}/{number}/", {}))
        condition = self.bodies.scalar(condition, f"{name}/condition")
        for output, then, otherwise in zip(node.output, *both, strict=True):
            if not self.bodies.is_tensor(then) or not self.bodies.is_tensor(otherwise):
                raise NeedsConstant(
                    f"it chooses among sequences or optional values and {node.input[0]!r} is computed", {node.input[0]}
                )
            shapes = [self.bodies.shape(then), self.bodies.shape(otherwise)]
            if self.opens and shapes[0] != shapes[1] and len(shapes[0]) == len(shapes[1]):
                self._apart(condition, then, otherwise, output)
                continue
            if shapes[0] != shapes[1]:
                raise NeedsConstant(
                    f"its branches give different shapes and {node.input[0]!r} is computed", {node.input[0]}
                )
            self.bodies.one("Where", [condition, then, otherwise], output)

    def _apart(self, condition: str, then: str, otherwise: str, output: str) -> None:
        """One of two tensors of different extents: with room for either, cut to those of the chosen one."""
        node = helper.make_node("Chosen", [condition, then, otherwise], [output], f"{output}/Chosen", domain=DOMAIN)
        self.bodies.process([node], {output})
        pairs = zip(self.bodies.shape(then), self.bodies.shape(otherwise), strict=True)
        for axis, pair in enumerate(pairs):
            if pair[0] != pair[1]:
                names = [self.bodies.new(f"{output}/{axis}/{branch}") for branch in ("then", "else")]
                for name, extent in zip(names, pair, strict=True):
                    self.bodies.values.put_extent(name, extent)
                self.sized(output, axis, self.bodies.computed("Where", [condition, *names], f"{output}/{axis}"))

    def _loop(self, node: onnx.NodeProto, name: str, body: onnx.GraphProto) -> None:
        course = self._entered(name, *[*node.input, "", ""][:2])
        if course.most is not None and course.most > MOST_STEPS and not course.live and _goes_on(body):
            raise _too_long()
        entered = course.live
        start = states = list(node.input[2:])
        collected: list[list[str]] = [[] for _ in node.output[len(states) :]]
        while course.going and not self._is_left(course):
            step = len(course.steps)
            prefix = f"{name}/{step}/"
            at, given = self.bodies.constant(step, f"{prefix}step"), states
            if course.live:  # a step that is not taken computes what the first one does, so that it reads what exists
                at = self._chosen(course.live, at, self.bodies.constant(0, f"{prefix}first"), f"{prefix}at")
                given = [
                    self._chosen(course.live, *pair, f"{prefix}in/{k}")
                    for k, pair in enumerate(zip(states, start, strict=True))
                ]
            with self.courses.within(course.live, True):
                going_on, *results = self._step(body, prefix, at, given)
            if course.live == entered != "" and any(result in self.bodies.missing for result in results):
                raise NeedsConstant(
                    f"its body has to know the step, and so whether {course.decided!r} holds", {course.decided}
                )
            for parts, result in zip(collected, results[len(states) :], strict=True):
                parts.append(result)
            after = results[: len(states)]
            if course.live:
                after = [
                    self._chosen(course.live, *pair, f"{prefix}out/{k}")
                    for k, pair in enumerate(zip(after, states, strict=True))
                ]
            states = after
            course.steps.append(course.live)
            self._go_on(course, going_on, prefix)
        if course.unended:
            states = [self._of_run(course, state, f"{name}/last/{k}") for k, state in enumerate(states)]
            for k, parts in enumerate(collected):
                parts[-1] = self._of_run(course, parts[-1], f"{name}/part/{k}")
        self.bodies.name_outputs(states, node.output[: len(states)])
        outputs = node.output[len(states) :]
        if not course.steps and any(outputs):
            self._nothing(body, f"{name}/never/", start, outputs)
            return
        self.bodies.stack(
            name,
            [parts * 2 if course.counted and len(parts) == 1 else parts for parts in collected],
            outputs,
            [0] * len(collected),
        )
        told = list(filter(None, node.output))
        if course.counted and any(outputs):
            count = self._of_run(course, self._count(course, f"{name}/steps"), f"{name}/steps")
            told.append(count)  # who asks for a shape reads it, and not what has the shape
            for output in filter(None, outputs):
                self.sized(output, 0, count)
        if course.unended:
            self.courses.not_ended(self.bodies, name, len(course.steps), course.live, told)

    def _of_run(self, course: _Course, tensor: str, name: str) -> str:
        """A result of a loop that may not have ended: what one more step would change is not known at import."""
        if tensor not in self.bodies.values or not course.unended:
            return tensor
        return self.bodies.computed("Where", [course.live, tensor, tensor], name)

    def _entered(self, name: str, limit: str, condition: str) -> _Course:
        """The course of a loop before its first step."""
        known = self.bodies.values
        course = _Course(decided=condition)
        if known.is_open(limit):
            course.most = largest(known[limit].reshape(-1)[0])
            course.decided = condition or limit
            course.limit = self.bodies.scalar(limit, f"{name}/limit")
        elif limit in known:
            course.most = max(0, self.bodies.only(limit))
        elif limit and not self.courses.is_of_data(limit):
            raise NeedsConstant(f"its number of steps depends on {limit!r}, which is computed", {limit})
        elif limit:
            course.decided = condition or limit
            course.limit = self.bodies.scalar(limit, f"{name}/limit")
        self._go_on(course, condition, f"{name}/entered/")
        return course

    def _is_left(self, course: _Course) -> bool:
        """Whether no more steps are unrolled: there are none, or as many as may be."""
        step = len(course.steps)
        if step == course.most:
            return True
        if course.live and step >= self.most_steps:
            course.unended = True
            return True
        if step >= MOST_STEPS and not course.live:
            raise _too_long()
        return False

    def _step(self, body: onnx.GraphProto, prefix: str, at: str, states: Sequence[str]) -> list[str]:
        going = self.bodies.constant(True, f"{prefix}going")
        return self.bodies.body(body, prefix, dict(zip(body_inputs(body), [at, going, *states], strict=True)))

    def _go_on(self, course: _Course, condition: str, prefix: str) -> None:
        """Enter what a tensor says about the next step, and what the trip count does; an empty name says nothing."""
        told = [course.live] if course.live else []
        if condition in self.bodies.values:
            course.going = bool(self.bodies.only(condition))
        elif condition:
            told.append(self.bodies.scalar(condition, f"{prefix}condition"))
        if course.limit:
            number = self.bodies.constant(len(course.steps), f"{prefix}number")
            told.append(self.bodies.computed("Less", [number, course.limit], f"{prefix}counted"))
        course.live = told[0] if told else ""
        for more in told[1:]:
            course.live = self.bodies.computed("And", [course.live, more], f"{prefix}live")

    def _chosen(self, condition: str, then: str, otherwise: str, name: str) -> str:
        """One of two tensors, while the model runs."""
        shapes = [self.bodies.shape(then), self.bodies.shape(otherwise)]
        if shapes[0] != shapes[1]:
            raise Unsupported(
                "its end depends on data that are computed while the model runs, and a state changes its shape from "
                f"step to step ({shape_text(shapes[1])}, then {shape_text(shapes[0])}): give it a trip count that is a "
                "constant or an input, or a state that has room for all steps from the beginning"
            )
        return self.bodies.computed("Where", [condition, then, otherwise], name)

    def _count(self, course: _Course, name: str) -> str:
        """How many steps are taken, a scalar tensor."""
        total = self.bodies.constant(sum(not live for live in course.steps), f"{name}/known")
        for number, live in enumerate(filter(None, course.steps)):
            taken = self.bodies.new(f"{name}/{number}/taken")
            cast = helper.make_node("Cast", [live], [taken], f"{taken}/Cast", to=onnx.TensorProto.INT64)
            self.bodies.process([cast], {taken})
            total = self.bodies.computed("Add", [total, taken], f"{name}/{number}")
        return total

    def _nothing(self, body: onnx.GraphProto, prefix: str, states: Sequence[str], outputs: Sequence[str]) -> None:
        """What a loop of no steps gives: as many elements as none, of the shape that a step would give."""
        _, *results = self._step(body, prefix, self.bodies.constant(0, f"{prefix}step"), states)
        declared = body.output[1 + len(states) :]
        for output, result, value in zip(outputs, results[len(states) :], declared, strict=True):
            if output:
                shape = self.bodies.shape(result)
                dims = value.type.tensor_type.shape.dim
                if value.type.tensor_type.HasField("shape") and all(d.HasField("dim_value") for d in dims):
                    shape = tuple(d.dim_value for d in dims)  # a step's may be known by its bound only
                self.bodies.values[output] = np.zeros(
                    (0, *shape), storage_dtype(self.bodies.values.types[result].dtype)
                )


def _goes_on(body: onnx.GraphProto) -> bool:
    """Whether a loop's condition is what it was before the step, so that only the trip count ends the loop."""
    copies: dict[str, str] = {node.output[0]: node.input[0] for node in body.node if node.op_type == "Identity"}
    name = body.output[0].name
    while name in copies:
        name = copies.pop(name)
    return bool(name == body.input[1].name)


def _too_long() -> Unsupported:
    return Explained(
        f"a loop of more than {MOST_STEPS} steps, which would be as many copies of its body: give it a smaller trip "
        "count, or write what it does as operators of whole tensors"
    )
