"""TreeEnsemble of ai.onnx.ml: every row goes down all trees at once, level by level, by look-ups in tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from smartmem_rules.records import dataclass
from smartmem_rules.tensor.builtins import Unsupported
from smartmem_rules.tensor.primitives import Array

_DOMAIN = "ai.onnx.ml"
_COMPARISONS = {0: "LessOrEqual", 1: "Less", 2: "GreaterOrEqual", 3: "Greater", 4: "Equal", 5: "Equal"}
"""By the number of a node's mode; 5 asks for the opposite."""
_UNEQUAL, _MEMBER = 5, 6
_AVERAGE, _SUM, _MIN, _MAX = range(4)
_TRANSFORMS = {1: "Softmax", 2: "Sigmoid"}
_MOST_LEVELS = 256


def is_ensemble(node: onnx.NodeProto) -> bool:
    return bool(node.domain == _DOMAIN and node.op_type == "TreeEnsemble")


def ensemble_nodes(node: onnx.NodeProto, rows: int, new: Callable[[str], str]) -> list[onnx.NodeProto]:
    """The nodes of ai.onnx that compute a TreeEnsemble.

    Args:
        rows: how many rows its input has.
        new: a name that no tensor has, as near as can be to a given one.

    Raises:
        Unsupported: the trees are damaged or too deep, or the results are transformed in a way that no operator has.
    """
    attributes: dict[str, Any] = {}
    for attribute in node.attribute:
        value = helper.get_attribute_value(attribute)
        attributes[attribute.name] = (
            numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)
        )
    for key, value in attributes.items():
        if value.ndim != (0 if key in _NUMBERS else 1):
            raise Unsupported(f"its trees are damaged ({key} has the shape {list(value.shape)})")
    try:
        _check_lengths(attributes)
        return _Ensemble(node, attributes, rows, new).nodes()
    except (KeyError, IndexError) as missing:
        raise Unsupported(f"its trees are damaged ({missing})") from None


def _check_lengths(given: Mapping[str, Array]) -> None:
    """Raises Unsupported where a table has more or fewer entries than there are nodes, or leaves."""
    for prefix, first in (("nodes_", "nodes_featureids"), ("leaf_", "leaf_targetids")):
        wanted = len(given[first])
        for key, value in given.items():
            if key.startswith(prefix) and len(value) != wanted and not (key in _OPTIONAL and not len(value)):
                raise Unsupported(f"its trees are damaged ({key} has {len(value)} entries, and {first} has {wanted})")


_OPTIONAL = ("nodes_hitrates", "nodes_missing_value_tracks_true")
_NUMBERS = ("aggregate_function", "n_targets", "post_transform")
"""The attributes that are no tables."""


@dataclass
class _Ensemble:
    """Interior nodes come first in all tables, then leaves, which lead to themselves."""

    node: onnx.NodeProto
    given: Mapping[str, Array]
    rows: int
    new: Callable[[str], str]
    made: list[onnx.NodeProto] = field(default_factory=list)

    def nodes(self) -> list[onnx.NodeProto]:
        self._walk()
        transform = int(self.given.get("post_transform", 0))
        if transform and transform not in _TRANSFORMS:
            raise Unsupported(f"its results are transformed (post_transform = {transform})")
        result = self._aggregated()
        name = _TRANSFORMS.get(transform, "Identity")
        self.made.append(helper.make_node(name, [result], [self.node.output[0]], self.node.name))
        return self.made

    # --- tables ---

    def _next(self, kind: str) -> Array:
        interior = len(self.given["nodes_featureids"])
        ids, leafs = self.given[f"nodes_{kind}nodeids"], self.given[f"nodes_{kind}leafs"]
        leaves = len(self.given["leaf_targetids"])
        if (np.where(leafs, ids >= leaves, ids >= interior) | (ids < 0)).any():
            raise Unsupported("its trees are damaged (a branch leads nowhere)")
        return np.concatenate([np.where(leafs, ids + interior, ids), interior + np.arange(leaves)]).astype(np.int64)

    def _per_node(self, values: Array, leaf: Any) -> Array:
        return np.concatenate([values, np.full(len(self.given["leaf_targetids"]), leaf, values.dtype)])

    def _levels(self, on: Array, off: Array) -> int:
        interior = len(self.given["nodes_featureids"])
        front, levels = set(map(int, self.given["tree_roots"])), 0
        while any(place < interior for place in front):
            front = {int(step[place]) for place in front for step in (on, off)}
            levels += 1
            if levels > _MOST_LEVELS:
                raise Unsupported(f"its trees have more than {_MOST_LEVELS} levels, or a cycle")
        return levels

    def _sets(self) -> Array:
        """The members that each node asks for, filled up with NaN."""
        modes = self.given["nodes_modes"]
        listed = self.given.get("membership_values", np.zeros(0, np.float32))
        parts = np.split(listed, np.flatnonzero(np.isnan(listed)) + 1)
        sets = iter(parts)
        members = [next(sets) if mode == _MEMBER else listed[:0] for mode in modes]
        table = np.full((len(modes), max([1, *map(len, members)])), np.nan, listed.dtype)
        for place, values in enumerate(members):
            table[place, : len(values)] = values
        return np.concatenate(
            [table, np.full((len(self.given["leaf_targetids"]), table.shape[1]), np.nan, table.dtype)]
        )

    # --- nodes ---

    def _add(self, operator: str, *inputs: str | Array, **attributes: Any) -> str:
        output = self.new(f"{self.node.output[0]}/{len(self.made)}")
        names = []
        for place, given in enumerate(inputs):
            names.append(given if isinstance(given, str) else self.new(f"{output}/{place}"))
            if not isinstance(given, str):
                value = numpy_helper.from_array(np.ascontiguousarray(given))
                self.made.append(helper.make_node("Constant", [], [names[-1]], value=value))
        self.made.append(helper.make_node(operator, names, [output], output, **attributes))
        return output

    def _walk(self) -> None:
        on, off = self._next("true"), self._next("false")
        roots = self.given["tree_roots"].astype(np.int64)
        self.place = self._add("Identity", np.broadcast_to(roots, (self.rows, len(roots))))
        for _ in range(self._levels(on, off)):
            taken = self._taken()
            self.place = self._add(
                "Where", taken, self._add("Gather", on, self.place), self._add("Gather", off, self.place)
            )

    def _taken(self) -> str:
        """Whether the condition of each row's node in each tree holds."""
        features = self._per_node(self.given["nodes_featureids"].astype(np.int64), 0)
        value = self._add("GatherElements", self.node.input[0], self._add("Gather", features, self.place), axis=1)
        modes = self._per_node(self.given["nodes_modes"].astype(np.int64), int(self.given["nodes_modes"][0]))
        kinds = sorted(set(modes.tolist()))
        result = self._holds(kinds[0], value)
        mode = self._add("Gather", modes, self.place) if len(kinds) > 1 else ""
        for kind in kinds[1:]:
            result = self._add("Where", self._add("Equal", mode, np.asarray(kind)), self._holds(kind, value), result)
        follows = self.given.get("nodes_missing_value_tracks_true")
        if follows is not None and follows.any():
            flag = self._add("Gather", self._per_node(follows.astype(bool), False), self.place)
            result = self._add("Or", result, self._add("And", self._add("IsNaN", value), flag))
        return result

    def _holds(self, kind: int, value: str) -> str:
        if kind == _MEMBER:
            members = self._add("Gather", self._sets(), self.place)
            among = self._add("Equal", self._add("Unsqueeze", value, axes=[2]), members)
            count = self._add("ReduceSum", self._add("Cast", among, to=onnx.TensorProto.INT32), axes=[2], keepdims=0)
            return self._add("Greater", count, np.asarray(0, np.int32))
        if kind not in _COMPARISONS:
            raise Unsupported(f"its nodes have the unknown mode {kind}")
        splits = self._add("Gather", self._per_node(self.given["nodes_splits"], 0), self.place)
        result = self._add(_COMPARISONS[kind], value, splits)
        return self._add("Not", result) if kind == _UNEQUAL else result

    def _aggregated(self) -> str:
        interior = len(self.given["nodes_featureids"])
        weights, targets = self.given["leaf_weights"], self.given["leaf_targetids"].astype(np.int64)
        way = int(self.given.get("aggregate_function", _SUM))
        leaf = self._add("Sub", self.place, np.asarray(interior))
        weight = self._add("Unsqueeze", self._add("Gather", weights, leaf), axes=[2])
        target = self._add("Unsqueeze", self._add("Gather", targets, leaf), axes=[2])
        own = self._add("Equal", target, np.arange(int(self.given["n_targets"])))
        if way in (_SUM, _AVERAGE):
            among = self._add("Where", own, weight, np.zeros((), weights.dtype))
            total = self._add("ReduceSum", among, axes=[1], keepdims=0)
            trees = np.asarray(len(self.given["tree_roots"]), weights.dtype)
            return self._add("Div", total, trees) if way == _AVERAGE else total
        if way not in (_MIN, _MAX):
            raise Unsupported(f"its trees are joined by the unknown function {way}")
        far = np.asarray(np.inf if way == _MIN else -np.inf, weights.dtype)
        among = self._add("Where", own, weight, far)
        best = self._add("ReduceMin" if way == _MIN else "ReduceMax", among, axes=[1], keepdims=0)
        return self._add("Where", self._add("IsInf", best), np.zeros((), weights.dtype), best)
