"""Finds the definition of an ONNX node in the rule base and instantiates it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from itertools import takewhile
from typing import Protocol

import numpy as np
import onnx
from onnx import helper, numpy_helper

from smartmem_rules.graph.instead import instead_of
from smartmem_rules.graph.known.shapes import holds_extents
from smartmem_rules.graph.loading import DEFAULT_DOMAIN, domain_of
from smartmem_rules.graph.weights import Values
from smartmem_rules.language import syntax as ast
from smartmem_rules.language.fixes import did_you_mean
from smartmem_rules.records import dataclass
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.rulebase.packed import Index, binding_of
from smartmem_rules.tensor.builtins import ConstantTensor, DefinitionError, Unsupported, Value
from smartmem_rules.tensor.classify import moves_only
from smartmem_rules.tensor.expr import TensorType, tensors_read
from smartmem_rules.tensor.extents import SymbolicExtentError, dimensions_needed, is_symbolic
from smartmem_rules.tensor.instantiate import Definitions, Instance, instantiate_overload
from smartmem_rules.tensor.primitives import Array
from smartmem_rules.tensor.unmet import UnmetError, value_text

_LARGEST_CONSTANT = 1 << 16
"""A tensor with more elements than this is read at run time rather than written into the equations."""

Raw = int | float | str | tuple[int | float | str, ...] | ConstantTensor | onnx.GraphProto


class NeedsConstant(Unsupported):
    """A definition would accept the node if the values of some tensors were known."""

    def __init__(self, message: str, tensors: Collection[str]) -> None:
        super().__init__(message)
        self.tensors = frozenset(tensors)


class NotAllowed(Unsupported):
    """Definitions take a node's operands, and not the values that these or its attributes have."""


class NeedsExtent(Unsupported):
    """A definition would accept the node if some open dimensions were numbers.

    Attributes:
        dimensions: their names.
    """

    def __init__(self, message: str, dimensions: Collection[str]) -> None:
        super().__init__(message)
        self.dimensions = frozenset(dimensions)


class Explained(Unsupported):
    """A node cannot be imported, and the message says what to do instead."""


class NotImported(Unsupported):
    """A node reads what another node gives that cannot be imported, whose own reason is the one that counts."""


class Scope(Protocol):
    """The tensors known so far."""

    @property
    def types(self) -> Mapping[str, TensorType]: ...

    @property
    def values(self) -> Values: ...


@dataclass(frozen=True, kw_only=True)
class Match:
    """An overload that accepts a node.

    `operands` are the tensors that it reads at run time, `attributes` everything else that it was given, with the
    defaults of its definition.
    """

    instance: Instance
    operands: tuple[str | None, ...]
    attributes: dict[str, Value]
    moves_only: bool
    reads: frozenset[str]


@dataclass
class _Prepared:
    instance: Instance
    attributes: dict[str, Value]
    moves_only: bool
    reads: frozenset[str]


@dataclass
class Matcher:
    """Matches nodes with overloads; equal nodes (operator, operand types, attributes) are instantiated once."""

    base: Definitions
    opsets: Mapping[str, int]
    instances: Instances
    """Takes in what nodes are, so that rules need not compute it again."""
    _names: dict[tuple[str, str], list[str]] = field(init=False)
    """Of definitions, by the operator of ONNX that they stand for."""
    _overloads: dict[tuple[str, str], list[ast.Operator]] = field(default_factory=dict)
    _cache: dict[tuple[object, ...], _Prepared | Unsupported] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._names = {}
        for (domain, name), names in Index.of(self.base.operators).bound.items():
            known = self._names.setdefault((DEFAULT_DOMAIN if domain is None else domain, name), [])
            known += [one for one in names if one not in known]

    def match(self, node: onnx.NodeProto, operands: Sequence[str | None], needed: int, scope: Scope) -> Match:
        """The first overload that accepts the node.

        Args:
            operands: the tensor names of the node's inputs, None for an absent one.
            needed: how many of its outputs are needed; a variadic output has all members that the node lists.

        Raises:
            NeedsConstant: one would, if it knew the values of some operands.
            NeedsExtent: one would, if it knew some open dimensions.
            NotAllowed: none takes the values of operands or attributes.
            Unsupported: none does; the message gives the reasons.
        """
        domain = domain_of(node.domain)
        candidates = self._candidates(domain, node.op_type)
        attributes = {attribute.name: raw_attribute(attribute) for attribute in node.attribute}
        reasons: dict[str, Unsupported] = {}
        unknown: set[str] = set()
        refused: list[ast.Operator] = []
        for operator in candidates:
            try:
                variadic = any(output.index is not None for output in operator.outputs)
                wanted = len(node.output) if variadic else needed
                return self._attempt(operator, operands, attributes, wanted, scope, refused)
            except Unsupported as reason:
                if not isinstance(reason, NeedsConstant):
                    refused.append(operator)
                reasons[str(reason)] = reason
                if isinstance(reason, NeedsConstant):
                    unknown |= reason.tensors
        if unknown:
            raise NeedsConstant("; ".join(reasons), unknown)
        open_ = {text: reason for text, reason in reasons.items() if isinstance(reason, NeedsExtent)}
        if open_:
            raise NeedsExtent("; ".join(open_), {name for reason in open_.values() for name in reason.dimensions})
        # an overload that takes the operands, and refuses what they are, says more than those for other operands
        impossible = [text for text, reason in reasons.items() if isinstance(reason, NotAllowed)]
        unmet = [text for text, reason in reasons.items() if isinstance(reason, UnmetError)]
        if unmet or len(impossible) == len(reasons):
            raise NotAllowed("; ".join(impossible + unmet))
        raise Unsupported("; ".join(reasons))

    def undefined(self, node: onnx.NodeProto) -> str | None:
        """Why no definition can accept the node, whatever its operands are; None if one might."""
        if domain_of(node.domain) == DEFAULT_DOMAIN and node.op_type == "Constant":
            return None
        try:
            self._candidates(domain_of(node.domain), node.op_type)
        except Unsupported as reason:
            return str(reason)
        return None

    def _candidates(self, domain: str, name: str) -> list[ast.Operator]:
        names = self._names.get((domain, name))
        if names is None:
            own = [n for d, n in self._names if d == domain]
            near = did_you_mean(name, own) if domain != DEFAULT_DOMAIN else None
            near = instead_of(domain, name) or near
            raise Unsupported("the rule base defines no such operator" + (f"; {near}" if near else ""))
        overloads = self._overloads.get((domain, name))
        if overloads is None:
            overloads = self._overloads[domain, name] = [
                one
                for definition in names
                for one in self.base.operators[definition]
                if not one.internal and _stands_for(one, domain, name)
            ]
        opset = self.opsets.get(domain)
        if opset is None:
            raise Unsupported(f"the model does not say which version of {domain} it uses")
        fitting = [o for o in overloads if o.onnx is None or _covers(o.onnx, opset)]
        if not fitting:
            ranges = ", ".join(_range_text(o.onnx) for o in overloads if o.onnx is not None)
            raise Unsupported(f"the model uses opset {opset}, its definitions cover {ranges}")
        return fitting

    def _attempt(
        self,
        operator: ast.Operator,
        actuals: Sequence[str | None],
        raw: Mapping[str, Raw],
        wanted: int,
        scope: Scope,
        refused: Collection[ast.Operator],
    ) -> Match:
        """The node as an instance of one overload; `refused` are those tried before."""
        operands, given = split_operands(operator, actuals, raw, scope)
        types = tuple(None if name is None else scope.types[name] for name in operands)
        key = (id(operator), types, tuple(sorted(given.items())), wanted)
        prepared = self._cache.get(key)
        if prepared is None:
            prepared = self._cache[key] = self._prepare(operator, types, given, wanted)
            if isinstance(prepared, _Prepared) and self._is_first(operator, refused):
                self.instances.put(types, prepared.attributes, wanted, prepared.instance)
        if isinstance(prepared, Unsupported):
            raise prepared.with_traceback(None)
        return Match(
            instance=prepared.instance,
            operands=operands,
            attributes=prepared.attributes,
            moves_only=prepared.moves_only,
            reads=prepared.reads,
        )

    def _prepare(
        self, operator: ast.Operator, types: Sequence[TensorType | None], given: Mapping[str, Value], wanted: int
    ) -> _Prepared | Unsupported:
        try:
            instance = instantiate_overload(self.base, operator, types, given, wanted)
        except UnmetError as unmet:
            return unmet
        except (DefinitionError, SymbolicExtentError) as reason:
            unknown = dimensions_needed(reason)
            if unknown:
                return NeedsExtent(str(reason), {one.name for one in unknown})
            if isinstance(reason, SymbolicExtentError):
                return Unsupported(str(reason))
            values = " and ".join(f"{name} is {value_text(value)}" for name, value in sorted(given.items()))
            where = f"where {values}" if values else "for these operands"
            return NotAllowed(f"{operator.name} cannot be computed {where} ({reason})")
        except Unsupported as reason:
            return Unsupported(str(reason))
        reads = frozenset(name for e in instance.equations for name in tensors_read(e.body))
        attributes = {name: instance.values.get(name) for name in compile_time_names(operator)} | dict(given)
        known: dict[str, Value] = {name: value for name, value in attributes.items() if value is not None}
        return _Prepared(instance, known, all(moves_only(e.body) for e in instance.equations), reads)

    def _is_first(self, operator: ast.Operator, refused: Collection[ast.Operator]) -> bool:
        """Whether the rule base, asked without the model's opset, gives the same overload: all before it refused."""
        tried = {id(one) for one in refused}
        before = takewhile(lambda one: one is not operator, self.base.operators[operator.name])
        return all(id(one) in tried for one in before)


def _stands_for(operator: ast.Operator, domain: str, name: str) -> bool:
    own, called = binding_of(operator)
    return (DEFAULT_DOMAIN if own is None else own, called) == (domain, name)


def compile_time_names(operator: ast.Operator) -> list[str]:
    """The attributes and compile-time operands of a definition."""
    names = [attribute.name for attribute in operator.attributes]
    return names + [formal.name for formal in operator.inputs if formal.constant is not None]


def _covers(binding: ast.OnnxBinding, opset: int) -> bool:
    return binding.since <= opset and (binding.until is None or opset <= binding.until)


def _range_text(binding: ast.OnnxBinding) -> str:
    return f"{binding.since} and later" if binding.until is None else f"{binding.since} to {binding.until}"


def split_operands(
    operator: ast.Operator, actuals: Sequence[str | None], raw: Mapping[str, Raw], scope: Scope
) -> tuple[tuple[str | None, ...], dict[str, Value]]:
    """The run-time operands of a node, and its attributes with the compile-time operands by name.

    Raises:
        Unsupported: a compile-time operand is not known, or there are more inputs than the definition has.
    """
    kinds = {attribute.name: attribute.kind for attribute in operator.attributes}
    kinds |= {formal.name: formal.constant for formal in operator.inputs if formal.constant is not None}
    open_types = {one.name for one in operator.attributes if one.kind == "string" and not one.required}
    given = {
        name: _attribute_value(name, value, kinds.get(name))
        for name, value in raw.items()
        if name not in open_types or not _names_no_type(value)
    }
    operands: list[str | None] = []
    rest = list(actuals)
    for formal in operator.inputs:
        if formal.variadic:
            operands.extend(rest)
            rest = []
            continue
        actual = rest.pop(0) if rest else None
        if formal.constant is None:
            operands.append(actual)
        elif actual is not None:
            if actual not in scope.values:
                reason = f"{operator.name} needs {formal.name} as a constant, but {actual!r} is computed"
                raise NeedsConstant(reason, {actual})
            type_ = scope.types[actual]
            if type_.elements > _LARGEST_CONSTANT:  # before anything is computed
                raise Unsupported(f"{formal.name} has {type_.elements} values, too many for a compile-time operand")
            given[formal.name] = compile_time(formal.name, scope.values[actual], formal.constant, type_.dtype)
    if any(name is not None for name in rest):
        raise Unsupported(f"{operator.name} takes {len(operator.inputs)} inputs, not {len(actuals)}")
    while operands and operands[-1] is None:
        operands.pop()
    return tuple(operands), given


def compile_time(name: str, array: Array, kind: str, dtype: str = "") -> Value:
    """A known tensor as the value of a compile-time operand.

    Args:
        dtype: its element type, where the array is one of open extents.

    Raises:
        Unsupported: it does not fit the kind.
    """
    if array.dtype.kind not in "biuf" and array.dtype.name != "bfloat16" and not holds_extents(array):
        raise Unsupported(f"{name} holds elements of type {array.dtype}")
    numbers: list[int | float] = array.reshape(-1).tolist()
    numbers = [int(v) if isinstance(v, bool) else v for v in numbers]
    if kind == "tensor":
        return ConstantTensor(array.shape, tuple(numbers), dtype if holds_extents(array) else array.dtype.name)
    if kind in ("int", "ints") and array.dtype.kind == "f":
        raise Unsupported(f"{name} is {array.dtype.name}, not integer")
    if kind in ("ints", "floats"):
        return tuple(float(v) for v in numbers) if kind == "floats" else tuple(numbers)
    if len(numbers) != 1:
        raise Unsupported(f"{name} has {len(numbers)} values, not one")
    return float(numbers[0]) if kind == "float" and not is_symbolic(numbers[0]) else numbers[0]


def raw_attribute(attribute: onnx.AttributeProto) -> Raw:
    """The value of an ONNX attribute; subgraphs stay what they are."""
    kinds = onnx.AttributeProto
    match attribute.type:
        case kinds.FLOAT:
            return attribute.f
        case kinds.INT:
            return attribute.i
        case kinds.STRING:
            return attribute.s.decode("utf-8", "replace")
        case kinds.FLOATS:
            return tuple(attribute.floats)
        case kinds.INTS:
            return tuple(attribute.ints)
        case kinds.STRINGS:
            return tuple(s.decode("utf-8", "replace") for s in attribute.strings)
        case kinds.TENSOR:
            array = numpy_helper.to_array(attribute.t)
            return ConstantTensor(array.shape, tuple(array.reshape(-1).tolist()), array.dtype.name)
        case kinds.GRAPH:
            return attribute.g
        case _:
            raise Unsupported(f"its attribute {attribute.name} is of a kind that no definition takes")


def _names_no_type(value: Raw) -> bool:
    """Whether a value is the element type UNDEFINED, by which ONNX means that the attribute is left out."""
    return isinstance(value, int) and value == onnx.TensorProto.UNDEFINED


def _attribute_value(name: str, value: Raw, kind: str | None) -> Value:
    """The value as the definition's kind wants it; dtypes that ONNX numbers become their names."""
    if isinstance(value, onnx.GraphProto):
        raise Unsupported(f"its attribute {name} is a subgraph")
    if kind == "string" and isinstance(value, int):
        try:
            return np.dtype(helper.tensor_dtype_to_np_dtype(value)).name
        except KeyError:
            raise Unsupported(f"its attribute {name} is {value}, which is no dtype") from None
    if kind == "float" and isinstance(value, int):
        return float(value)
    return value
