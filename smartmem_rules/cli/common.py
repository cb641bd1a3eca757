"""What the commands share: options, progress, JSON, errors and exit codes."""

from __future__ import annotations

import functools
import json
import re
import sys
import tempfile
import tokenize
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from smartmem_rules import __version__
from smartmem_rules.cli import choices
from smartmem_rules.cli.verbosity import is_quiet
from smartmem_rules.environment import TRACEBACK
from smartmem_rules.errors import SmartmemError
from smartmem_rules.limits import LimitError, Limits

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

    from smartmem_rules.runtime.feeds import Array

ANSWER_IS_NO = 1
BAD_INPUT = 2
BUG = 70
_LONGEST_REASON = 300
_PIPE_WIDTH = 160

F = TypeVar("F", bound=Callable[..., Any])


def console() -> Console:
    """Where tables go: nowhere with `--quiet`."""
    from rich.console import Console

    # a pipe has no width: its lines are not folded
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    return Console(highlight=False, width=width, quiet=is_quiet())


def say(text: str = "", end: str = "\n") -> None:
    """Print what people read, but not with `--quiet`."""
    if not is_quiet():
        click.echo(text + end, nl=False)


def remark(text: str) -> None:
    """Say on stderr what is no error, but not with `--quiet`."""
    if not is_quiet():
        click.echo(text, err=True)


def answer_no(*reasons: str) -> NoReturn:
    """Leave with exit code 1; `--quiet`, which printed no table that says why, is told the reasons on stderr."""
    if is_quiet():
        for reason in reasons:
            click.echo(f"smartmem: {reason}", err=True)
    raise SystemExit(ANSWER_IS_NO)


def print_json(data: Any) -> None:
    """The one thing on stdout with `--json`."""
    click.echo(json.dumps(data, indent=2, allow_nan=False))


def fail(message: str) -> None:
    """Say what is wrong with the input and leave with exit code 2."""
    click.echo(f"smartmem: error: {message}", err=True)
    raise SystemExit(BAD_INPUT)


def reports_errors(function: F) -> F:
    """A command whose errors become one message each.

    What a user can mend gives exit code 2, a bug of the library 70 and a file with the traceback.
    `SMARTMEM_TRACEBACK=raise` lets bugs through.
    """

    @functools.wraps(function)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except SmartmemError as error:
            fail(str(error))
        except MemoryError:
            fail("there is too little memory on this computer; set a lower bound with --limit, or use a smaller model")
        except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
            raise  # click's own
        except Exception as error:
            if _was_interrupted(error):
                raise click.Abort from error
            if TRACEBACK.value() == "raise":
                raise
            _report_bug(error)

    return wrapped  # type: ignore[return-value]


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an exception: Python 3.11 wraps it where a class is being made."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _report_bug(error: Exception) -> NoReturn:
    text = traceback.format_exc()
    try:
        with tempfile.NamedTemporaryFile(prefix="smartmem-", suffix=".txt", delete=False) as file:
            file.write(f"smartmem {__version__}, {sys.version}\n{sys.argv}\n{text}".encode("utf-8", "backslashreplace"))
        place = f"the traceback is in {file.name}"
    except OSError as reason:
        place = f"its traceback could not be written ({reason.strerror or reason})"
    line = " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST_REASON]
    click.echo(f"smartmem: internal error, please report it: {line} ({place})", err=True)
    raise SystemExit(BUG)


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


def _limits(context: click.Context, option: click.Parameter, values: Sequence[str]) -> Limits:
    del context, option
    known = {field.name: field.type for field in fields(Limits)}
    given: dict[str, Any] = {}
    for value in values:
        name, _, number = value.partition("=")
        if name not in known:
            raise click.BadParameter(f"there is no limit {name!r}; the limits are {', '.join(known)}")
        try:
            given[name] = float(number) if known[name] == "float" else int(number)
        except ValueError:
            raise click.BadParameter(f"{value!r} is not of the form NAME=NUMBER") from None
    try:
        return Limits(**given)
    except LimitError as error:
        raise click.BadParameter(str(error)) from None


def given_inputs(context: click.Context, option: click.Parameter, values: Sequence[str]) -> dict[str, Path]:
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
    callback=given_inputs,
    metavar="NAME=FILE.npy",
    help="An input's values; else random.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON only; progress goes to stderr.")
debug_option = click.option(
    "--debug", is_flag=True, help="Kernels check each read and write of device memory against its tensor's bounds."
)
device_option = click.option(
    "--device",
    default="auto",
    show_default=True,
    shell_complete=choices.offered(choices.devices),
    help="auto, a part of a name, PLATFORM:DEVICE, or a device profile.",
)
level_option, level_of_model_option = (
    click.option(
        "--level",
        default="smartmem",
        show_default=True,
        shell_complete=choices.offered(choices.levels),
        help=f"Which steps are taken{limited}.",
    )
    for limited in ("", "; of a model, not a plan")
)


rules_option = click.option(
    "--rules", multiple=True, type=click.Path(path_type=Path), help="One more rule file; repeatable."
)
dims_option = click.option(
    "--dim",
    "--dims",
    "dims",
    multiple=True,
    callback=_dims,
    metavar="NAME=N|LEAST..GREATEST",
    help="Extents of symbolic dimensions, or ranges: batch=1,sequence=1..512.",
)


self_test_option = click.option(
    "--self-test",
    "probes",
    is_flag=True,
    help="The plan tests itself where it is first loaded: each kernel answers questions whose answers are known.",
)


def optimize_options(function: F) -> F:
    """The options that say how a model is optimized, but for the level."""
    return device_option(options_for_any_device(function))


def options_for_any_device(function: F) -> F:
    """`optimize_options` without the device."""
    options = [
        click.option(
            "--dtype", type=click.Choice(["float32", "float16", "bfloat16"]), default="float32", show_default=True
        ),
        click.option("--memory", type=click.Choice(["auto", "image", "buffer"]), default="auto", show_default=True),
        click.option(
            "--layout",
            type=click.Choice(["exact", "local"]),
            default="exact",
            show_default=True,
            help="Choose contiguous axes for the whole graph, or edge by edge.",
        ),
        rules_option,
        click.option(
            "--disable",
            multiple=True,
            metavar="RULE",
            shell_complete=choices.offered(choices.switchable, separated=True),
            help="Leave out a rule, a family, tag:WORD, a schedule or a fuse block; repeatable.",
        ),
        dims_option,
        click.option(
            "--limit",
            "limits",
            multiple=True,
            callback=_limits,
            metavar="NAME=NUMBER",
            shell_complete=choices.offered(choices.limits),
            help=f"How large the model may be: {', '.join(field.name for field in fields(Limits))}; repeatable.",
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
    """A progress bar on stderr, for `optimize`; nothing where stderr is no terminal, or with `--quiet`."""
    if not sys.stderr.isatty() or is_quiet():
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


def read_inputs(files: Mapping[str, Path]) -> dict[str, Array]:
    """The arrays of .npy files.

    Raises:
        GraphError: a file is missing or holds no array.
    """
    if not files:
        return {}
    import numpy as np

    from smartmem_rules.graph.errors import GraphError  # start-up time

    arrays = {}
    for name, path in files.items():
        try:
            with open(path, "rb") as file:
                arrays[name] = np.lib.format.read_array(file, allow_pickle=False)
        except FileNotFoundError:
            raise GraphError(f"{path}: there is no such file") from None
        except (OSError, ValueError, EOFError, SyntaxError, tokenize.TokenError) as error:  # the header is Python
            raise GraphError(f"{path}: this is no array file of numpy (.npy), or it is damaged ({error})") from error
    return arrays
