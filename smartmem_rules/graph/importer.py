"""Imports ONNX models: one forward pass that computes what is known and gives every other node its equations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import onnx

from smartmem_rules.graph.counting.counted_shapes import counted_shape
from smartmem_rules.graph.counting.opened import Opened, extents_nodes, live_and_counted
from smartmem_rules.graph.counting.sizes import sizes_through, unknown_size
from smartmem_rules.graph.described import Ahead
from smartmem_rules.graph.expansion.bodies import Bodies, has_body, renamed_node
from smartmem_rules.graph.expansion.control import ControlFlow
from smartmem_rules.graph.expansion.courses import Courses
from smartmem_rules.graph.expansion.functions import body_of, is_function
from smartmem_rules.graph.expansion.local_functions import inline_functions
from smartmem_rules.graph.expansion.old_forms import (
    BROADCAST_BY_RULE,
    NEWEST_OLD_OPSET,
    Known,
    current_form,
    is_renamed,
)
from smartmem_rules.graph.expansion.randomness import DOMAIN, RUN_TYPE, Drawing
from smartmem_rules.graph.expansion.sequences import Lists, knows_lists
from smartmem_rules.graph.expansion.tree_ensembles import ensemble_nodes, is_ensemble
from smartmem_rules.graph.failures import Failures, UncoveredNodesError, check_given, check_new
from smartmem_rules.graph.guard import Guard
from smartmem_rules.graph.known.constants import constant_node_value, dense
from smartmem_rules.graph.known.expected import check_elements
from smartmem_rules.graph.known.folding import Folding
from smartmem_rules.graph.known.keeping import keeping_rule_of
from smartmem_rules.graph.known.shapes import evaluated_outputs, holds_extents, is_open
from smartmem_rules.graph.loading import (
    DEFAULT_DOMAIN,
    Dims,
    ModelSource,
    domain_of,
    input_types,
    load_model,
    names_of,
    node_inputs,
    open_dimensions,
    opsets,
    sorted_nodes,
)
from smartmem_rules.graph.matching import Match, Matcher, NeedsConstant
from smartmem_rules.graph.model import Counted, Graph, Node, OpenElements
from smartmem_rules.graph.run_number import RUN_NUMBER
from smartmem_rules.graph.unique_names import UniqueNames
from smartmem_rules.graph.weights import Values, check_data_files
from smartmem_rules.graph.wellformed import check_model
from smartmem_rules.limits import DEFAULT_LIMITS, Limits
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.rulebase.kept import KeepRules
from smartmem_rules.tensor.binding import operand_name, output_name
from smartmem_rules.tensor.builtins import Unsupported
from smartmem_rules.tensor.expr import TensorType, rename_reads
from smartmem_rules.tensor.extents import Dimension, SymbolicExtentError
from smartmem_rules.tensor.instantiate import Instance
from smartmem_rules.tensor.interpreter.interpret import InterpretError
from smartmem_rules.tensor.primitives import Array

_FEW = 1 << 10
"""Elements of the largest tensor that the graph knows besides its constants: shapes, axes, bounds."""


def import_model(
    model: ModelSource,
    base: KeepRules,
    dims: Dims | None = None,
    fold_outputs: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    folder: Path | None = None,
    weights: Mapping[str, Array] | None = None,
    counts: bool = False,
    ahead: bool = True,
    any_extent: bool = False,
) -> Graph:
    """The graph of an ONNX model over the operators of a rule base.

    Args:
        model: a path, the bytes of a file, or a ModelProto (which is left unchanged).
        base: the operator definitions.
        dims: extents of the symbolic dimensions of the inputs, or (least, greatest) for a graph of all in between.
        fold_outputs: whether what makes an output of the model may be computed here when all of its operands are known.
        limits: how large the model may be.
        folder: where the data files of a ModelProto are.
        weights: constants that the model names and does not hold; the graph shares their memory.
        counts: extents that nodes count may become dimensions, for who takes the graph apart (`graph.counting.parts`).
        ahead: whether weights that the model describes are drawn before somebody asks for them, in the background.
        any_extent: whether `limits` leave open extents alone, for who makes no kernels of the graph.

    Raises:
        LimitError: the model exceeds a limit.
        UnknownValuesError: definitions would accept all nodes if the values of some tensors were known.
        UncoveredNodesError: no definition accepts some nodes.
        GraphError: the model is damaged, lacks data or dimensions, or uses operators that the rule base does not
            cover; all such operators are named at once.
    """
    proto, beside = load_model(model)
    folder = beside or folder
    check_model(proto, limits)
    proto = inline_functions(proto)
    data_files = check_data_files(proto.graph, folder)
    background = Ahead() if ahead else Ahead(most=0)

    def importing(opened: Opened | None) -> _Import:
        values = Values(folder, background)
        for name, array in (weights or {}).items():
            values[name] = array
        return _Import(proto, base, values, fold_outputs, Guard(limits, any_extent), opened)

    try:
        made = _imported(importing, dims or {}) if counts else importing(None).run(dims or {})
    except BaseException:
        background.stop()
        raise
    return replace(made, data_files=data_files)


def _imported(importing: Callable[[Opened | None], _Import], dims: Dims) -> Graph:
    """The graph, with extents that nodes count as dimensions of its own where other nodes have to know them."""
    first = importing(None)
    try:
        return first.run(dims)
    except UncoveredNodesError:
        if not first.sizes and not any(operator == "If" for _, operator in first.failures.nodes):
            raise
    return importing(Opened(frozenset(dims))).run(dims)


class _Import:
    def __init__(
        self,
        model: onnx.ModelProto,
        base: KeepRules,
        values: Values,
        fold_outputs: bool,
        guard: Guard,
        opened: Opened | None,
    ) -> None:
        self.model = model
        self.base = base
        self.guard = guard
        self.computed = set() if fold_outputs else {value.name for value in model.graph.output}
        self.values = values
        self.types: dict[str, TensorType] = values.types
        versions = opsets(model)
        self.opset = versions.get(DEFAULT_DOMAIN, NEWEST_OLD_OPSET + 1)
        if self.opset < BROADCAST_BY_RULE:
            versions[DEFAULT_DOMAIN] = BROADCAST_BY_RULE  # its nodes are brought into that form
        versions = {DEFAULT_DOMAIN: onnx.defs.onnx_opset_version(), **versions, DOMAIN: 1}
        self.matcher = Matcher(base, versions, Instances(base))
        self.folding = Folding()
        self.failures = Failures()
        self.missing: set[str] = set()
        self.nodes: list[Node] = []
        self.kept: dict[str, str] = {}
        self.layout_nodes: set[str] = set()
        self.node_names = UniqueNames()
        self.used = UniqueNames()
        self.lists = Lists(values, self.missing, self.used.add)
        self.drawing = Drawing(self.types, values, self.used.add)
        self.places: dict[int, int] = {}
        self.dimensions: tuple[Dimension, ...] = ()
        self.sizes: dict[str, dict[int, str]] = {}
        self.opened = opened
        self.courses = Courses(self.nodes, self.types)

    def run(self, dims: Dims) -> Graph:
        graph = self.model.graph
        outputs = [value.name for value in graph.output]
        self._initializers(graph)
        inputs = self.guard.within(input_types(graph, self.values.types, dims))
        self.dimensions = open_dimensions(dims)
        self.types.update({RUN_NUMBER: RUN_TYPE} | inputs)
        everyone = list(graph.node)  # kept as long as `places`, or others would get the same ids
        self.places = {id(node): place for place, node in enumerate(everyone)}
        self.used.taken.update(names_of(graph))
        nodes = sorted_nodes(everyone, self.types, outputs)
        self._process(nodes, {name for node in nodes for name in node_inputs(node)}.union(outputs))
        self.lists.refuse_outputs(outputs)
        if self.failures.nodes:
            raise self.failures.error(self.dimensions)
        # what an output's extent depends on is an output too
        sizes = {name: self.sizes[name] for name in outputs if name in self.sizes}
        outputs += dict.fromkeys(count for axes in sizes.values() for count in axes.values())
        endings = self.courses.endings(self._bodies(), outputs, self._needed)
        outputs += [] if endings is None else [endings.number]
        kept, counted = self._needed(outputs)
        given = [*inputs, *([RUN_NUMBER] if any(RUN_NUMBER in node.operands for node in kept) else [])]
        return replace(
            self._graph(kept, given, outputs),
            sizes=sizes,
            endings=endings,
            dimensions=self.dimensions,
            counted=counted,
            instances=self.matcher.instances,
        )

    def _needed(self, outputs: Sequence[str]) -> tuple[list[Node], tuple[Counted, ...]]:
        everything = [*extents_nodes(self.nodes, outputs, self.values, self.node_names.add), *self.nodes]
        return live_and_counted(everything, outputs, {} if self.opened is None else self.opened.counted)

    def _graph(self, nodes: list[Node], inputs: list[str], outputs: list[str]) -> Graph:
        read = dict.fromkeys(name for node in nodes for name in node.operands if name is not None)
        read.update(dict.fromkeys(outputs))
        constants = self.values.table(n for n in read if n in self.values and not self.values.is_open(n))
        types = {name: self.types[name] for name in (*inputs, *constants)}
        for node in nodes:
            types.update((e.tensor, e.type) for e in node.equations)
            types.update((name, self.types[name]) for name in node.outputs)
        kept = frozenset(name for name in self.kept if name in types)
        return Graph(
            name=self.model.graph.name,
            nodes=nodes,
            types=types,
            constants=constants,
            inputs=inputs,
            outputs=outputs,
            operator_counts=Counter(node.op_type for node in self.model.graph.node if node.op_type != "Constant"),
            layout_operators=sum(node.name in self.layout_nodes for node in nodes),
            kept=kept,
            known={name: self.values[name] for name in self.values.few(_FEW)},
            extents={n: OpenElements(self.values[n], self.types[n].dtype) for n in self.values.of_extents()},
        )

    def _initializers(self, graph: onnx.GraphProto) -> None:
        for tensor in graph.initializer:
            self.values.add(tensor.name, tensor)
        for sparse in graph.sparse_initializer:
            self.values[sparse.values.name] = dense(sparse)

    def _bodies(self) -> Bodies:
        return Bodies(self.values, self.missing, self._process, self.used.add)

    # --- the forward pass ---

    def _process(self, order: Iterable[onnx.NodeProto], read: Collection[str]) -> None:
        """Import nodes in order; `read` are the tensors that a node or an output of the graph needs."""
        for node in order:
            self.guard.node()
            if self.opened is not None and self.opened.names:
                node = renamed_node(node, self.opened.names)
            name = self.node_names.add(node.name or f"{node.op_type}_{self.places.get(id(node), '')}")
            operands = [operand or None for operand in node.input]
            outputs = list(node.output)
            check_new(outputs, (self.types, self.missing, self.lists.members, self.lists.absent))
            if any(operand in self.missing for operand in operands):
                self.missing.update(outputs)
                undefined = None if self._is_taken_apart(node) else self.matcher.undefined(node)
                if undefined is not None:
                    self.failures.add(node, name, Unsupported(undefined), self.types)
                continue
            try:
                self._node(node, name, operands, outputs, read)
                check_given(outputs, read, (self.types, self.missing, self.lists.members, self.lists.absent))
            except (Unsupported, InterpretError, SymbolicExtentError) as reason:
                self.failures.add(node, name, self._explained(reason), self.types)
                self.missing.update(outputs)

    def _is_taken_apart(self, node: onnx.NodeProto) -> bool:
        """Whether the importer, and not a definition of the rule base, may say what the node computes."""
        taken = knows_lists(node) or has_body(node) or is_ensemble(node) or is_renamed(node, self.opset)
        return taken or is_function(node, self.matcher.opsets)

    def _explained(self, reason: Exception) -> Exception:
        """A value that is missing because a rule leaves it to the run: no value of an input would help."""
        kept = sorted(reason.tensors & self.kept.keys()) if isinstance(reason, NeedsConstant) else []
        if not kept:
            return reason
        rules = ", ".join(dict.fromkeys(f"`{self.kept[name]}`" for name in kept))
        return Unsupported(
            f"{reason}; {', '.join(kept)} is left to the run by the `keep` rule {rules}: give it a guard"
        )

    def _node(
        self, node: onnx.NodeProto, name: str, operands: list[str | None], outputs: list[str], read: Collection[str]
    ) -> None:
        if node.op_type == "Constant" and domain_of(node.domain) == "ai.onnx":
            value = constant_node_value(node)
            if isinstance(value, onnx.TensorProto):
                self.values.add(outputs[0], value)
            else:
                self.values[outputs[0]] = value
            return
        *before, node = self._replacement(node)
        if before:
            self._process(before, {output for one in before for output in one.output})
        operands = [operand or None for operand in node.input]
        flow = ControlFlow(self._bodies(), self._sized, self.courses, self.guard.limits.steps, self.opened is not None)
        if self.lists.takes(node) and not (has_body(node) and node.op_type != "SequenceMap"):
            self.lists.unfold(node, self._process, flow.bodies.body)
            return
        body = None if self.matcher.undefined(node) is None else self._function(node, operands)
        if body is not None:
            flow.call(node, name, body)
            return
        if has_body(node):
            flow.unfold(node, name)
            return
        needed = max((place + 1 for place, output in enumerate(outputs) if output in read), default=1)
        match = self.matcher.match(node, operands, needed, self)
        self._instance(node, name, match, outputs)

    def _replacement(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """The nodes that stand for one whose operator, or form of it, the rule base leaves to the importer."""
        source = node.input[0] if node.input else ""
        if source in self.sizes:
            parts = counted_shape(node, self.types[source].shape, self.sizes[source], self.used.add)
            if parts:
                return parts
        if is_ensemble(node) and source and self.matcher.undefined(node) is not None:
            return ensemble_nodes(node, self.types[source].shape[0], self.used.add)
        *before, node = current_form(node, self.opset, Known(self.types, self.values, self.used.add))
        return [*before, *(self.drawing.with_bits(node) if self.matcher.undefined(node) is None else [node])]

    def _sized(self, tensor: str, axis: int, count: str) -> None:
        if tensor in self.missing:
            return  # why it could not be imported is noted, and refuses the model
        self.sizes.setdefault(tensor, {})[axis] = count
        if self.opened is not None:
            node = self.opened.cut(tensor, self.types[tensor], self.sizes[tensor], self.used.add)
            (equation,) = node.equations
            self.types[equation.tensor] = equation.type
            self.nodes.append(replace(node, name=self.node_names.add(node.name)))

    def _function(self, node: onnx.NodeProto, operands: list[str | None]) -> onnx.GraphProto | None:
        if any(operand is not None and operand not in self.types for operand in operands):
            return None  # a sequence
        return body_of(node, [None if o is None else self.types[o] for o in operands], self.matcher.opsets)

    def _instance(self, node: onnx.NodeProto, name: str, match: Match, outputs: list[str]) -> None:
        instance = match.instance
        self.guard.instance(instance, f"a result of the {node.op_type} {name!r}")
        where = f"the {node.op_type} {name!r}"
        check_elements(self.base, instance, match.operands, self.types, self.values, where)
        outputs = outputs[: instance.declared]
        outputs += [""] * (len(instance.outputs) - instance.declared)
        outputs = [o or self.used.add(f"{name}.{place}") for place, o in enumerate(outputs)]
        names: dict[str, str] = {output_name(place): output for place, output in enumerate(outputs)}
        for place, operand in enumerate(match.operands):
            if operand is not None:
                names[operand_name(place)] = operand
        sizes = {o: self.sizes[o] for o in match.operands if o in self.sizes}
        known = all(names[tensor] in self.values for tensor in match.reads if tensor.startswith("$"))
        if known and sizes:
            raise unknown_size(next(iter(sizes)))  # what it gives follows from the extents alone
        keep = keeping_rule_of(self.base, instance, match.operands, self.values) if known else None
        folds = known and keep is None and self.computed.isdisjoint(outputs)
        if folds and self._known(instance, match.operands, outputs, where):
            return
        for equation in instance.equations:
            if equation.tensor not in names:
                names[equation.tensor] = self.used.add(f"{name}.{equation.tensor}")
        equations = tuple(
            replace(equation, tensor=names[equation.tensor], body=rename_reads(equation.body, names))
            for equation in instance.equations
        )
        bounds = {tensor: self.types[tensor].shape for tensor in sizes}
        self.sizes.update(sizes_through(equations, outputs, sizes, bounds))
        self.types.update(zip(outputs, instance.outputs, strict=True))
        if keep is not None:
            self.kept.update(dict.fromkeys(outputs, keep.name))
        origin = (node.name or name,)
        self.nodes.append(
            Node(name, instance.operator.name, match.operands, match.attributes, tuple(outputs), origin, equations)
        )
        if match.moves_only:
            self.layout_nodes.add(name)
        if self.opened is not None and instance.sizes:
            self.opened.counts_alike(self.nodes[-1], [outputs[size.count] for size in instance.sizes])
        for size in instance.sizes:
            self._sized(outputs[size.output], size.axis, outputs[size.count])

    def _known(self, instance: Instance, operands: Sequence[str | None], outputs: list[str], where: str) -> bool:
        """Take in what a node that reads no run-time tensor gives; False where that waits for the open extents."""
        size = self.guard.folded(instance)
        values = [None if o is None or o not in self.values else self.values.operand(o) for o in operands]
        has_open = is_open(instance.equations) or any(map(self.values.is_open, filter(None, operands)))
        if not (has_open and (self.dimensions or self.opened)):
            for output, value in zip(outputs, self.folding.outputs(instance, values, size, where), strict=False):
                self.values[output] = value
            return True
        held = {operand_name(n): self.values[o] for n, o in enumerate(operands) if o is not None and o in self.values}
        try:
            results = evaluated_outputs(instance, held)
        except SymbolicExtentError:
            return False
        for output, result, type_ in zip(outputs, results, instance.outputs, strict=False):
            if holds_extents(result):
                self.values.put(output, result, TensorType(type_.dtype, result.shape))
            else:
                self.values[output] = result
        return True
