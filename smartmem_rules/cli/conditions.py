"""`--fail-on NAME>NUMBER`: conditions on the figures of a report, for use in CI."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from smartmem_rules.errors import SmartmemError
from smartmem_rules.records import dataclass

_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge, "<=": operator.le, "!=": operator.ne, "==": operator.eq, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
_CONDITION = re.compile(r"\s*(?P<name>[\w.]+)\s*(?P<operator>>=|<=|!=|==|>|<)\s*(?P<number>[-+.\deE]+)\s*", re.ASCII)


class ConditionError(SmartmemError):
    """A condition names no figure of the report."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A condition on a figure of a report.

    Attributes:
        name: of the figure; dots lead into the report, as in `layout_operators.after`.
    """

    name: str
    operator: str
    number: float

    def __str__(self) -> str:
        return f"{self.name}{self.operator}{self.number:g}"

    def holds(self, data: Mapping[str, object]) -> str | None:
        """What holds, with the figure; None where the condition does not hold.

        Raises:
            ConditionError: there is no such figure.
        """
        value: Any = data
        for part in self.name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            from smartmem_rules.language.fixes import did_you_mean  # start-up time

            figures = _figures(data)
            near = did_you_mean(self.name, figures)
            said = near or f"it has {', '.join(figures)}"
            raise ConditionError(f"--fail-on {self}: the report has no figure {self.name!r}; {said}")
        return f"{self.name} is {value:g}" if _OPERATORS[self.operator](value, self.number) else None


def _figures(data: Mapping[str, Any], before: str = "") -> list[str]:
    """The names of all figures of a report."""
    found = []
    for name, value in data.items():
        if isinstance(value, Mapping) and name != "operator_types":
            found += _figures(value, f"{before}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found.append(f"{before}{name}")
    return found


def _parsed(context: click.Context, option: click.Parameter, values: Sequence[str]) -> list[Condition]:
    del context, option
    conditions = []
    for value in values:
        found = _CONDITION.fullmatch(value)
        try:
            number = float(found["number"]) if found else None
        except ValueError:
            number = None
        if found is None or number is None:
            raise click.BadParameter(f"{value!r} is not of the form NAME>NUMBER, as in kernels>40")
        conditions.append(Condition(name=found["name"], operator=found["operator"], number=number))
    return conditions


fail_on_option = click.option(
    "--fail-on",
    "fail_on",
    multiple=True,
    callback=_parsed,
    metavar="NAME>NUMBER",
    help="Exit code 1 if a figure of --json is so: kernels>40, layout_operators.after>0; repeatable.",
)
