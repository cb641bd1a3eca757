"""Values that shells offer for options and arguments which no `click.Choice` can list: rule files may add to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING

import click

from smartmem_rules.errors import SmartmemError
from smartmem_rules.limits import Limits

if TYPE_CHECKING:
    from smartmem_rules.rulebase.base import RuleBase

_Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def offered(values: Callable[[click.Context], Iterable[str]], separated: bool = False) -> _Completer:
    """A `shell_complete` that offers values.

    Args:
        values: all of them; asked only when a shell completes.
        separated: several may stand in one word, separated by commas; what stands before the last comma is kept.
    """

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        del parameter
        before, comma, begun = incomplete.rpartition(",") if separated else ("", "", incomplete)
        return [f"{before}{comma}{value}" for value in values(context) if value.startswith(begun)]

    return complete


def _base(context: click.Context) -> RuleBase:
    """The rules, with those of `--rules` before it on the line."""
    from smartmem_rules.rulebase.base import load_rules  # start-up time

    try:
        return load_rules(context.params.get("rules") or ())
    except SmartmemError:
        return load_rules()  # a completion cannot say what is wrong with a file; the command will


def levels(context: click.Context) -> list[str]:
    return list(_base(context).levels)


def levels_or_all(context: click.Context) -> list[str]:
    return [*levels(context), "all"]


def devices(context: click.Context) -> list[str]:
    """`auto`, the devices that are here by their numbers, and the profiles."""
    return ["auto", *_places(), *sorted(_base(context).devices)]


def profiles(context: click.Context) -> list[str]:
    return sorted(_base(context).devices)


@cache
def _places() -> list[str]:
    from smartmem_rules.runtime.devices import devices as here  # start-up time

    try:
        return [device.place for device in here()]
    except SmartmemError:
        return []  # there is no OpenCL here


def rules(context: click.Context) -> list[str]:
    """The names of rules and of their families."""
    return sorted(_base(context).families())


def switchable(context: click.Context) -> list[str]:
    return sorted(_base(context).switchable())


def operators(context: click.Context) -> list[str]:
    return sorted(_base(context).operators)


def shipped(context: click.Context) -> list[str]:
    del context
    from smartmem_rules.graph.zoo import shipped_models  # start-up time

    return list(shipped_models())


def peers(context: click.Context) -> list[str]:
    """Systems that `smartmem bench` compares with."""
    del context
    from smartmem_rules.benchmarking.peer_systems import SYSTEMS  # start-up time

    return list(SYSTEMS)


def hunted(context: click.Context) -> list[str]:
    """Systems in which `smartmem fuzz` looks for errors."""
    del context
    from smartmem_rules.fuzzing.case import SELF  # start-up time
    from smartmem_rules.fuzzing.systems import SYSTEMS  # start-up time

    return [*SYSTEMS, SELF]


def limits(context: click.Context) -> list[str]:
    del context
    return [f"{field.name}=" for field in fields(Limits)]


def outputs(context: click.Context) -> list[str]:
    """Commands whose JSON has a schema."""
    del context
    from smartmem_rules.schema.published import OUTPUTS  # start-up time

    return list(OUTPUTS)


def domains(context: click.Context) -> list[str]:
    del context
    return ["com.microsoft"]
