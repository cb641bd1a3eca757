"""Any operator of the rule base, drawn from its definition: what no other recipe knows is tried by this one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import onnx

from smartmem_rules.fuzzing.recipes.builder import Builder
from smartmem_rules.language import syntax as ast
from smartmem_rules.rulebase.base import RuleBase, load_rules
from smartmem_rules.rulebase.instances import Instances
from smartmem_rules.tensor.builtins import Value
from smartmem_rules.verification.instances.roles import operator_roles
from smartmem_rules.verification.operators import NoReference, onnx_node, run_time_formals, single
from smartmem_rules.verification.semantics.terms import Application, leaves

TRIES = 12
_POSITIVE = ("kernel_shape", "strides", "dilations", "output_shape")
_DTYPES = ("float32", "float16", "float64", "int32", "int64", "uint8", "int8", "bool")


@cache
def rule_base() -> RuleBase:
    return load_rules()


@cache
def candidates() -> dict[str, list[ast.Operator]]:
    """The overloads that are ONNX's own today, by operator."""
    found: dict[str, list[ast.Operator]] = {}
    for name, overloads in sorted(rule_base().operators.items()):
        own = [o for o in overloads if _is_own(o) and run_time_formals(o)]
        if own:
            found[name] = own
    return found


def _is_own(overload: ast.Operator) -> bool:
    binding = overload.onnx
    return not overload.internal and (binding is None or (binding.domain == "ai.onnx" and binding.until is None))


def any_operator(b: Builder) -> None:
    """One operator at operands and attributes that its definition takes, the operands views of the graph's tensors."""
    for _ in range(TRIES):
        name = b.pick(tuple(candidates()))
        if _drawn(b, b.pick(candidates()[name])):
            return


def _drawn(b: Builder, overload: ast.Operator) -> bool:
    search = single(overload, Instances(rule_base()), b.integer(0, 2**30), variadic=b.integer(1, 3))
    search.probes = False
    for number, case in enumerate(search.cases(4)):
        if case is not None and isinstance(case.left, Application):
            return _append(b, overload, case.left)
        if number >= 3:
            break
    return False


def _append(b: Builder, overload: ast.Operator, term: Application) -> bool:
    found = leaves(term)
    if not _sensible(overload, term.attributes):
        return False
    if any(leaf.type.dtype not in _DTYPES for leaf in found.values()):
        return False
    values = {name: b.fresh(leaf.type.shape, leaf.type.dtype) for name, leaf in found.items()}
    operands = [values[o.name] for o in term.operands if o is not None]  # type: ignore[union-attr]
    count = len(term.instance.outputs)
    try:
        onnx.defs.get_schema(overload.name, b.opset, "")
        one = onnx_node(overload, operands, term.attributes, count)
    except (NoReference, onnx.defs.SchemaError):
        return False
    names: dict[str, str] = {}
    for name, value in one.feeds.items():
        if name in one.constants:
            names[name] = b.constant(value)
        elif value.dtype.kind == "f":
            names[name] = b.operand(value.shape, value.dtype.name)
        else:
            names[name] = b.weight(value.shape, value.dtype.name)
    given = {a.name: onnx.helper.get_attribute_value(a) for a in one.node.attribute}
    return bool(b.add(one.node.op_type, [names.get(n, "") for n in one.node.input], count, **given))


def _sensible(overload: ast.Operator, attributes: Mapping[str, Value]) -> bool:
    """Whether attributes mean something: flags are 0 or 1, and windows have positive extents."""
    roles = operator_roles(overload, rule_base().functions)
    for attribute in overload.attributes:
        value = attributes.get(attribute.name)
        literals = roles[attribute.name].literals
        if attribute.kind == "int" and literals and literals <= {0, 1} and value not in (0, 1, None):
            return False
        if attribute.name in _POSITIVE and isinstance(value, tuple) and any(v < 1 for v in value):  # type: ignore[operator]
            return False
    return True
