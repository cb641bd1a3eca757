"""Every error that the interface's documentation names is a SmartmemError."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest

from smartmem_rules import api, pipeline
from smartmem_rules.checking import own_references
from smartmem_rules.decoding import errors as decoding_errors
from smartmem_rules.errors import SmartmemError
from smartmem_rules.exchange import certificates
from smartmem_rules.explanation import trace
from smartmem_rules.report import writing
from smartmem_rules.simplification import checking
from smartmem_rules.torch_backend import errors as torch_errors

ARGUMENTS = {"ValueError", "TypeError"}
"""What a wrong argument raises: a slip of the caller, not of what was given to it."""


def documented() -> Iterator[str]:
    members = [api, *vars(api).values(), *vars(api.OptimizedPlan).values()]
    for member in members:
        text = inspect.getdoc(member) or ""
        for names in re.findall(r"^ +((?:\w+, )*\w+Error): ", text.partition("Raises:")[2], re.MULTILINE):
            yield from names.split(", ")


def subclasses(base: type[Exception]) -> Iterator[type[Exception]]:
    for one in base.__subclasses__():
        yield one
        yield from subclasses(one)


def test_documented_errors_have_the_common_base() -> None:
    assert pipeline  # imports all stages
    assert certificates  # imported when one is written or read
    assert checking  # imported when a model is simplified
    assert own_references  # imported when results are compared
    assert torch_errors  # imported when a model of PyTorch is optimized
    assert decoding_errors  # imported when a model generates
    assert trace  # imported when a run is traced
    assert writing  # imported when a report is written
    named = set(documented()) - ARGUMENTS
    assert {"GraphError", "PlanError", "DeviceError", "LimitError"} <= named
    assert named <= {one.__name__ for one in subclasses(SmartmemError)}


@pytest.mark.parametrize("error", sorted(set(subclasses(SmartmemError)), key=lambda one: one.__qualname__))
def test_each_error_says_what_it_means(error: type[Exception]) -> None:
    assert error.__doc__
    assert error.__doc__ != SmartmemError.__doc__
