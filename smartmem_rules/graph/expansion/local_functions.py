"""The functions that a model brings along (ONNX IR, FunctionProto), written out where they are called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx

from smartmem_rules.graph.loading import all_nodes, domain_of, opsets
from smartmem_rules.graph.model import GraphError


def inline_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its local functions expanded; the model itself where it has none.

    A function may name other versions of operator sets than the model, where its operators are the same in both.

    Raises:
        GraphError: an operator of a function differs between these versions, or ONNX cannot expand a function.
    """
    if not model.functions:
        return model
    from onnx.inliner import inline_local_functions

    versions = opsets(model)
    problems = [problem for function in model.functions for problem in _changed(function, versions)]
    if problems:
        raise GraphError("; ".join(problems) + "; write the functions for the model's versions")
    try:
        return inline_local_functions(_of_versions(model, versions))
    except Exception as error:
        raise GraphError(f"the model's local functions cannot be inlined: {error}") from error


def _of_versions(model: onnx.ModelProto, versions: Mapping[str, int]) -> onnx.ModelProto:
    """The model with functions that name its own versions of operator sets: ONNX expands no others."""
    if all(versions.get(domain_of(e.domain), e.version) == e.version for f in model.functions for e in f.opset_import):
        return model
    found = onnx.ModelProto()
    found.CopyFrom(model)
    for function in found.functions:
        for entry in function.opset_import:
            entry.version = versions.get(domain_of(entry.domain), entry.version)
    return found


def _changed(function: onnx.FunctionProto, versions: Mapping[str, int]) -> Iterator[str]:
    """Why operators of a function are others in the model's versions of their sets."""
    for entry in function.opset_import:
        domain, own = domain_of(entry.domain), entry.version
        model = versions.get(domain, own)
        changed = {
            node.op_type
            for node in all_nodes(function.node)
            if domain_of(node.domain) == domain and _since(node, own) != _since(node, model)
        }
        if changed:
            yield (
                f"the function {domain_of(function.domain)}::{function.name} is of version {own} of {domain} and the "
                f"model of version {model}, between which {', '.join(sorted(changed))} changed"
            )


def _since(node: onnx.NodeProto, version: int) -> int | None:
    """The version of the set since which the operator is as it is in this version; None where ONNX knows none."""
    try:
        return int(onnx.defs.get_schema(node.op_type, version, node.domain).since_version)
    except onnx.defs.SchemaError:
        return None
