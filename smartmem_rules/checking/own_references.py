"""numpy functions that rule files name for operators of their own: `reference "package.module:function"`.

They are imported when a check is asked for, never when rules are loaded.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from smartmem_rules.errors import SmartmemError
from smartmem_rules.language import syntax as ast
from smartmem_rules.rulebase.identity import bindings
from smartmem_rules.tensor.builtins import DefinitionError, Unsupported
from smartmem_rules.tensor.definitions.values import Scope, evaluate
from smartmem_rules.tensor.instantiate import Definitions
from smartmem_rules.tensor.primitives import Array

References = Mapping[tuple[str, str], ast.Operator]
"""The definitions that name a function, by domain and name of the ONNX operator."""


class OwnReferenceError(SmartmemError):
    """The function that a rule file names cannot be imported, or fails, or gives no tensors."""


def references_of(base: Definitions) -> References:
    """The definitions that name a function; of several for one ONNX operator the first."""
    found: dict[tuple[str, str], ast.Operator] = {}
    for overloads in base.operators.values():
        for operator in overloads:
            for binding in bindings(operator) if operator.reference is not None else ():
                found.setdefault((binding.domain, binding.name), operator)
    return found


def by_reference(
    operator: ast.Operator,
    operands: Sequence[Array | None],
    attributes: Mapping[str, object],
    outputs: int,
    functions: Mapping[str, ast.Function],
) -> list[Array]:
    """The operator by the numpy function that its definition names.

    Args:
        operator: with a reference.
        operands: all inputs in the order of the signature, `const` ones among them; None for an absent one.
        attributes: that are given; the signature's defaults are added where they need no operands.
        outputs: how many results are needed.
        functions: of the rule base, for defaults.

    Raises:
        OwnReferenceError: the function cannot be imported, raises, or gives too few results or none that are arrays.
    """
    function = function_of(str(operator.reference), operator.span.file, _place(operator))
    given = list(operands)
    if not any(formal.variadic for formal in operator.inputs):
        given += [None] * (len(operator.inputs) - len(given))
    try:
        with np.errstate(all="ignore"):
            made = function(*given, **_with_defaults(operator, attributes, functions))
    except Exception as failure:  # an author's code may raise anything
        raise OwnReferenceError(f"{_place(operator)} fails: {type(failure).__name__}: {failure}") from failure
    results = list(made) if isinstance(made, tuple | list) else [made]
    arrays = [np.asarray(result) for result in results]
    if len(arrays) < outputs:
        raise OwnReferenceError(f"{_place(operator)} gives {len(arrays)} of {outputs} results; return them as a tuple")
    wrong = next((array for array in arrays if array.dtype.kind not in "fiub"), None)
    if wrong is not None:
        raise OwnReferenceError(f"{_place(operator)} gives elements of the type {wrong.dtype}, which is no tensor's")
    return arrays


def _with_defaults(
    operator: ast.Operator, attributes: Mapping[str, Any], functions: Mapping[str, ast.Function]
) -> dict[str, Any]:
    given = dict(attributes)
    for attribute in operator.attributes:
        if attribute.name not in given and attribute.default is not None:
            try:
                given[attribute.name] = evaluate(attribute.default, Scope({}, {}, functions))
            except (DefinitionError, Unsupported):
                continue  # it follows from operands, which the function sees
    return given


def _place(operator: ast.Operator) -> str:
    named = bindings(operator)
    name = f"{named[0].domain}::{named[0].name}" if named else operator.name
    return f'{operator.place("reference")}: the reference "{operator.reference}" of {name}'


@lru_cache(maxsize=64)
def function_of(reference: str, file: str, place: str) -> Callable[..., Any]:
    """The function of a name; a module beside the rule file comes before an installed one.

    Raises:
        OwnReferenceError: there is no such module or function, or importing it fails.
    """
    module_name, _, name = reference.partition(":")
    beside = Path(file).resolve().parent.joinpath(*module_name.split(".")).with_suffix(".py")
    try:
        module = _module_beside(beside) if beside.is_file() else importlib.import_module(module_name)
    except Exception as failure:  # an author's code may raise anything
        where = f"neither {beside} nor an installed module" if isinstance(failure, ModuleNotFoundError) else str(beside)
        raise OwnReferenceError(
            f"{place} cannot be imported ({where}): {type(failure).__name__}: {failure}; mend it, or leave the check "
            "out with --no-check"
        ) from failure
    function = getattr(module, name, None)
    if not callable(function):
        raise OwnReferenceError(f"{place}: {module.__name__} has no function `{name}`")
    made: Callable[..., Any] = function
    return made


def _module_beside(path: Path) -> Any:
    """A module by its file, under a name of its own: several rule files may have one of the same name beside them."""
    name = f"smartmem_reference_{zlib.crc32(str(path).encode())}_{path.stem}"
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    found.loader.exec_module(module)
    return module
