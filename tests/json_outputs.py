"""Whatever a command prints with `--json` in a test is held against its published schema."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

from click.testing import CliRunner, Result

from tests.schema.validating import errors

_ANSWERS = (0, 1)
"""Exit codes of commands that print; `smartmem check` prints with 2, too."""


def hold_against_schemas() -> None:
    """From now on `CliRunner` looks at each output."""
    CliRunner.invoke = _looking(CliRunner.invoke)  # type: ignore[method-assign]


def _looking(invoke: Callable[..., Result]) -> Callable[..., Result]:
    @functools.wraps(invoke)
    def looked(self: CliRunner, main: Any, arguments: Any = None, *more: Any, **options: Any) -> Result:
        result = invoke(self, main, arguments, *more, **options)
        if isinstance(arguments, (list, tuple)) and arguments and "--json" in arguments and main.name == "main":
            expected = (*_ANSWERS, 2) if arguments[0] == "check" else _ANSWERS
            if result.exit_code in expected and result.stdout.strip():
                refuse_others(str(arguments[0]), result.stdout)
        return result

    return looked


def refuse_others(command: str, output: str) -> None:
    """Fail where an output is not what the schema of its command says, or has what that does not name."""
    schema = _schema(command)
    found = list(errors(json.loads(output), schema, schema))
    assert not found, f"smartmem {command} --json is not as its schema says:\n" + "\n".join(found[:20])


@functools.cache
def _schema(command: str) -> dict[str, Any]:
    from smartmem_rules.schema.published import schema_of

    return schema_of(command, closed=True)
