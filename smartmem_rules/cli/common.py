"""What the commands share: options, progress, JSON, errors and exit codes."""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

ANSWER_IS_NO = 1
BAD_INPUT = 2
_PIPE_WIDTH = 160

F = TypeVar("F", bound=Callable[..., Any])


def console() -> Console:
    """Where tables go."""
    from rich.console import Console

    # a pipe has no width: its lines are not folded
    return Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=_PIPE_WIDTH)


def print_json(data: Any) -> None:
    """The one thing on stdout with `--json`."""
    click.echo(json.dumps(data, indent=2, allow_nan=False))


def fail(message: str) -> None:
    """Say what is wrong with the input and leave with exit code 2."""
    click.echo(f"smartmem: error: {message}", err=True)
    raise SystemExit(BAD_INPUT)


def reports_errors(function: F) -> F:
    """A command whose expected errors become one message and exit code 2; others are bugs and keep their traceback."""

    @functools.wraps(function)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except Exception as error:
            if not isinstance(error, _expected()):
                raise
            fail(str(error))

    return wrapped  # type: ignore[return-value]


def _expected() -> tuple[type[Exception], ...]:
    from smartmem_rules.graph.model import GraphError
    from smartmem_rules.language.diagnostics import LanguageError
    from smartmem_rules.plan.model import PlanError
    from smartmem_rules.runtime.compiling import BuildError
    from smartmem_rules.runtime.devices import DeviceError
    from smartmem_rules.runtime.executor import RunError
    from smartmem_rules.runtime.plan_file import PlanFileError
    from smartmem_rules.runtime.reference import NoReferenceError
    from smartmem_rules.simulate.source import SimulationError
    from smartmem_rules.tuning.database import TuningError

    return (
        GraphError,
        LanguageError,
        PlanError,
        BuildError,
        DeviceError,
        RunError,
        PlanFileError,
        NoReferenceError,
        SimulationError,
        TuningError,
    )


_EXTENT = re.compile(r"(?P<name>.+)=(?P<low>\d+)(\.\.(?P<high>\d+))?", re.ASCII)
_NEXT_DIMENSION = re.compile(r",(?=[^,]+=)")


def _dims(context: click.Context, option: click.Parameter, values: Sequence[str]) -> dict[str, int | tuple[int, int]]:
    del context, option
    dims: dict[str, int | tuple[int, int]] = {}
    for value in (part for text in values for part in _NEXT_DIMENSION.split(text)):
        found = _EXTENT.fullmatch(value)
        if found is None:
            raise click.BadParameter(f"{value!r} is not of the form NAME=NUMBER or NAME=LEAST..GREATEST")
        low, high = int(found["low"]), found["high"]
        dims[found["name"]] = low if high is None else (low, int(high))
    return dims


def _inputs(context: click.Context, option: click.Parameter, values: Sequence[str]) -> dict[str, Path]:
    del context, option
    files = {}
    for value in values:
        name, equals, path = value.rpartition("=")
        if not equals or not name or not path:
            raise click.BadParameter(f"{value!r} is not of the form NAME=FILE.npy")
        files[name] = Path(path)
    return files


inputs_option = click.option(
    "--input",
    "inputs",
    multiple=True,
    callback=_inputs,
    metavar="NAME=FILE.npy",
    help="An input's values; else random.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON only; progress goes to stderr.")
debug_option = click.option(
    "--debug", is_flag=True, help="Kernels check each read and write of device memory against its tensor's bounds."
)
device_option = click.option(
    "--device", default="auto", show_default=True, help="auto, a part of a name, PLATFORM:DEVICE, or a device profile."
)


def optimize_options(function: F) -> F:
    """The options that say how a model is optimized, but for the level."""
    options = [
        device_option,
        click.option("--dtype", type=click.Choice(["float32", "float16"]), default="float32", show_default=True),
        click.option("--memory", type=click.Choice(["auto", "image", "buffer"]), default="auto", show_default=True),
        click.option(
            "--layout",
            type=click.Choice(["exact", "local"]),
            default="exact",
            show_default=True,
            help="Choose contiguous axes for the whole graph, or edge by edge.",
        ),
        click.option("--rules", multiple=True, type=click.Path(path_type=Path), help="One more rule file; repeatable."),
        click.option(
            "--disable",
            multiple=True,
            metavar="RULE",
            help="Leave out a rule, a family, tag:WORD, a schedule or a fuse block; repeatable.",
        ),
        click.option(
            "--dim",
            "--dims",
            "dims",
            multiple=True,
            callback=_dims,
            metavar="NAME=N|LEAST..GREATEST",
            help="Extents of symbolic dimensions, or ranges: batch=1,sequence=1..512.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def names(values: Sequence[str]) -> list[str]:
    """The values of an option that may be repeated or separated by commas."""
    return [name for value in values for name in value.split(",") if name]


@contextmanager
def progress_display() -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar on stderr, for `optimize`; nothing where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield lambda stage, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    screen = Console(stderr=True)
    columns = (TextColumn("{task.description:>10}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage)
            # a stage of one step shows a bar that runs until it is done
            bars.update(tasks[stage], completed=done, total=None if (done, total) == (0, 1) else total)

        yield show


def read_inputs(files: Mapping[str, Path]) -> dict[str, Any]:
    """The arrays of .npy files.

    Raises:
        GraphError: a file is missing or holds no array.
    """
    if not files:
        return {}
    import numpy as np

    from smartmem_rules.graph.errors import GraphError

    arrays = {}
    for name, path in files.items():
        try:
            with open(path, "rb") as file:
                arrays[name] = np.lib.format.read_array(file, allow_pickle=False)
        except FileNotFoundError:
            raise GraphError(f"{path}: there is no such file") from None
        except (OSError, ValueError, EOFError) as error:
            raise GraphError(f"{path}: this is no array file of numpy (.npy), or it is damaged ({error})") from error
    return arrays
