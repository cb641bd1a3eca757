"""The graphs of a model's steps, read from the model each time: nothing keeps its weights on the host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import onnx
from onnx import TensorProto, helper

from smartmem_rules.decoding.choosing import GREATEST, Selection
from smartmem_rules.decoding.errors import GenerateError
from smartmem_rules.decoding.model.graphs import PAST, SEQUENCE, Step, make_step, without_weights
from smartmem_rules.decoding.model.growth import growth_of
from smartmem_rules.decoding.model.interface import LOGITS, POSITIONS, Interface, interface_of, refuse_single_tokens
from smartmem_rules.decoding.model.keeping import Facts, mark_of
from smartmem_rules.decoding.model.pairs import (
    carried_once,
    check_weights,
    is_merged,
    paired_interface,
    read_carried,
    take_branch,
)
from smartmem_rules.decoding.model.parts import parts_of
from smartmem_rules.decoding.model.unchanging import Given, computed_once, make_once, with_extents
from smartmem_rules.graph.failures import UncoveredNodesError
from smartmem_rules.graph.importer import import_model
from smartmem_rules.graph.loading import load_model
from smartmem_rules.graph.weights import check_data_files
from smartmem_rules.limits import DEFAULT_LIMITS, LimitError
from smartmem_rules.pipeline import rules_of
from smartmem_rules.plan.model_statistics import input_bounds
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.extents import shape_text
from smartmem_rules.tensor.primitives import storage_dtype

if TYPE_CHECKING:
    from smartmem_rules.graph.loading import Dims, ModelSource
    from smartmem_rules.graph.model import Graph
    from smartmem_rules.planned import PlanOptions
    from smartmem_rules.rulebase.base import RuleBase

COUNTS = "seqlens_k"
"""The operand by which an operator places new rows behind as many as each sequence has (ONNX Runtime)."""
_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A model that is read for a number of sequences and a bound of the cache.

    Attributes:
        with_past: of two decoders, the one behind the cache; `source` is then the one for prompts.
        options: arguments of `optimize`.
    """

    source: ModelSource
    sequences: int
    bound: int
    options: PlanOptions
    with_past: ModelSource | None = None

    @cached_property
    def base(self) -> RuleBase:
        """The rules; looked up once, as they are asked for at each node."""
        return rules_of(self.options.get("rules", ()), self.options.get("disable", ()))

    def step(self, interface: Interface, step: Step) -> Graph:
        """The graph of a step.

        Raises:
            GenerateError: it cannot be for so many tokens, or does not give the logits of all of them.
            GraphError: the model is damaged or uses something that no rule covers.
        """
        model, folder = self._part(step.behind)
        if step.behind:
            read_carried(model, interface)
        make_step(model, interface, step)
        graph = self._imported(model, folder, step)
        _check_logits(graph, interface.tokens)
        _check_presents(graph, interface, step)
        return graph

    def once(self, interface: Interface, further: Sequence[Given], outputs: Sequence[Given]) -> Graph:
        """The graph of what is computed once."""
        model, folder = self._part(behind=False)
        make_once(model, interface, further, [one.name for one in outputs])
        return self._import(model, folder, {})

    def facts(self, dims: Mapping[str, int]) -> Facts:
        """What the graphs say, for which no weights are read but the beginnings of those of two files.

        Args:
            dims: of the open extents of further inputs.

        Raises:
            GenerateError: the model has no cache, or two models do not belong together.
            GraphError: a model is damaged or uses something that no rule covers.
        """
        model, folder = _own_model(self.source)
        if self.with_past is not None or is_merged(model):
            return self._facts_of_two(dims)
        interface = interface_of(model)
        refuse_single_tokens(model, interface)
        further = with_extents(interface.further, self.sequences, dims)
        names = computed_once(model.graph, interface)
        without_weights(model)
        once = self._once(model, folder, interface, further, names)
        return self._facts(model, folder, interface, further, once)

    def _facts_of_two(self, dims: Mapping[str, int]) -> Facts:
        """Those of two decoders."""
        prompts, folder = self._part(behind=False)
        tokens, other_folder = self._part(behind=True)
        interface = paired_interface(prompts, tokens)
        files: tuple[tuple[str, str], ...] = ()
        if self.with_past is not None:
            check_weights(prompts, folder, tokens, other_folder)
            files = (*_data_files(prompts, folder), *_data_files(tokens, other_folder))
        further = with_extents(interface.further, self.sequences, dims)
        names = carried_once(prompts, interface)
        without_weights(prompts)
        without_weights(tokens)
        once = self._once(prompts, folder, interface, further, names)
        read_carried(tokens, interface)
        facts = self._facts(tokens, other_folder, interface, further, once)
        step = Step(sequences=self.sequences, behind=False, selection=Selection(kind=GREATEST), given=(*further, *once))
        make_step(prompts, interface, step)
        graph = self._imported(prompts, folder, step)
        _check_presents(graph, interface, step)
        vocabulary = input_bounds(graph).get(interface.tokens)
        if vocabulary != facts.vocabulary:
            raise GenerateError(
                f"the two models do not belong together: one knows {vocabulary} tokens, and the other "
                f"{facts.vocabulary}; give the two files of one export"
            )
        return replace(facts, data_files=files)

    def _facts(
        self,
        model: onnx.ModelProto,
        folder: Path | None,
        interface: Interface,
        further: tuple[Given, ...],
        once: tuple[Given, ...],
    ) -> Facts:
        """What the graph of a step behind a cache says."""
        step = Step(sequences=self.sequences, behind=True, selection=Selection(kind=GREATEST), given=(*further, *once))
        make_step(model, interface, step)
        graph = self._imported(model, folder, step)
        _check_presents(graph, interface, step)
        bounds = input_bounds(graph)
        definitions = (self.base.operators.get(node.operator, ()) for node in graph.nodes)
        operands = {operand.name for overloads in definitions for one in overloads for operand in one.inputs}
        return Facts(
            interface=interface,
            growth=growth_of(graph, interface.cached, self.bound),
            vocabulary=bounds.get(interface.tokens),
            positions=bounds.get(POSITIONS),
            counts=COUNTS in operands,
            pads=interface.mask and (interface.positions or COUNTS in operands),
            further=further,
            once=once,
        )

    def _once(
        self,
        model: onnx.ModelProto,
        folder: Path | None,
        interface: Interface,
        further: Sequence[Given],
        names: Sequence[str],
    ) -> tuple[Given, ...]:
        """What is computed once of these tensors: floats, since whole numbers may decide shapes."""
        if not names:
            return ()
        copied = onnx.ModelProto()
        copied.CopyFrom(model)
        make_once(copied, interface, further, names)
        types = self._import(copied, folder, {}).types
        found = (
            Given(
                name=name,
                shape=types[name].shape,
                dtype=helper.np_dtype_to_tensor_dtype(storage_dtype(types[name].dtype)),
            )
            for name in names
        )
        return tuple(one for one in found if one.dtype in _FLOATS)

    def _part(self, behind: bool) -> tuple[onnx.ModelProto, Path | None]:
        return _part(self.source, self.with_past, behind)

    def _imported(self, model: onnx.ModelProto, folder: Path | None, step: Step) -> Graph:
        # the last token of a full cache and a longest prompt both need a place more
        tokens = PAST if step.behind else SEQUENCE
        try:
            return self._import(model, folder, {tokens: (1, self.bound - 1)})
        except LimitError as error:
            self._import(model, folder, {tokens: 1})  # where one token is too much as well, it is not the bound
            raise GenerateError(
                f"the cache is bound to {self.bound} tokens of each of {self.sequences} sequences, which is too many "
                f"for this model: {error}; give a shorter bound{' or fewer sequences' if self.sequences > 1 else ''}"
            ) from error
        except UncoveredNodesError as error:
            said = "\n".join(line for line in str(error).splitlines() if "--dim" not in line)
            raise GenerateError(
                f"{said}\nor, where it is the number of tokens that cannot be ({PAST} are those in the cache, "
                f"{SEQUENCE} those of a prompt), give a bound below {self.bound}"
            ) from error

    def _import(self, model: onnx.ModelProto, folder: Path | None, dims: Dims) -> Graph:
        return import_model(model, self.base, dims, limits=self.options.get("limits", DEFAULT_LIMITS), folder=folder)


def _own_model(source: ModelSource) -> tuple[onnx.ModelProto, Path | None]:
    """A model, to be changed, and the folder where its data files are.

    Raises:
        GraphError: there is no such file, or it is no ONNX model.
    """
    model, folder = load_model(source)
    if model is not source:
        return model, folder
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    return copied, folder


def _data_files(model: onnx.ModelProto, folder: Path | None) -> Iterator[tuple[str, str]]:
    """The data files of a model, and their marks."""
    if folder is not None:
        for path in ((folder / name).resolve() for name in check_data_files(model.graph, folder)):
            yield str(path), mark_of(path)


def _part(source: ModelSource, with_past: ModelSource | None, behind: bool) -> tuple[onnx.ModelProto, Path | None]:
    """The model of a step, to be changed: of two decoders, the one that the step is for."""
    model, folder = _own_model(with_past if behind and with_past is not None else source)
    if with_past is None and is_merged(model):
        take_branch(model, behind)
    return model, folder


def interface_within(source: ModelSource, with_past: ModelSource | None) -> Interface:
    """The inputs and outputs of a model, or of two decoders.

    Raises:
        GenerateError: there is no cache, or the two do not belong together.
        GraphError: a model is damaged.
    """
    model, _ = _own_model(source)
    if with_past is None and not is_merged(model):
        return interface_of(model)
    return paired_interface(*(_part(source, with_past, behind)[0] for behind in (False, True)))


def _check_logits(graph: Graph, tokens: str) -> None:
    """Refuse a model that does not give logits of all tokens of a prompt."""
    shape, given = graph.types[LOGITS].shape, graph.types[tokens].shape
    if len(shape) != 3 or shape[:2] != given:
        raise GenerateError(
            f"the output {LOGITS} is {shape_text(shape)}, and has to be [sequences, tokens, vocabulary], with the "
            "logits of each token of a prompt; export the model again"
        )


def _check_presents(graph: Graph, interface: Interface, step: Step) -> None:
    """Refuse a model whose present has not one position for each of the past and each new token."""
    for tensor in interface.cached:
        (first, *_) = parts_of(tensor, step.cache)
        expected = [step.sequences, *tensor.shape[1:]]
        expected[tensor.axis] = graph.types[interface.tokens].shape[1]
        if step.behind:
            expected[tensor.axis] += graph.types[first.input].shape[0]
        shape = graph.types[tensor.present].shape
        if shape != tuple(expected):
            raise GenerateError(
                f"the output {tensor.present!r} is {shape_text(shape)}, and has to be {shape_text(expected)}: a "
                "position for each token before and each new one; export the model again"
            )
