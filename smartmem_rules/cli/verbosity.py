"""`-v` and `-q` of every command: what of Python's logging goes to stderr."""

from __future__ import annotations

import logging
import sys

import click

from smartmem_rules.logs import NAME

_FORMAT = "%(levelname)s %(name)s: %(message)s"


def is_quiet() -> bool:
    """Whether `-q` was given."""
    return logging.getLogger(NAME).level == logging.ERROR


def _more(context: click.Context, option: click.Parameter, count: int) -> None:
    del option
    if count:
        _show(context, logging.INFO if count == 1 else logging.DEBUG)


def _less(context: click.Context, option: click.Parameter, given: bool) -> None:
    del option
    if given:
        _show(context, logging.ERROR)


def _show(context: click.Context, level: int) -> None:
    """Show messages from a level on until the command ends."""
    logger = logging.getLogger(NAME)
    before = logger.level
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(_FORMAT))
    logger.addHandler(handler)
    logger.setLevel(level)

    def restore() -> None:
        logger.removeHandler(handler)
        logger.setLevel(before)

    context.call_on_close(restore)


def with_verbosity(command: click.Command) -> click.Command:
    """A command, and those below it, with `-v` and `-q`."""
    if isinstance(command, click.Group):
        for below in command.commands.values():
            with_verbosity(below)
    if any(parameter.name == "verbose" for parameter in command.params):
        return command
    command.params += [
        click.Option(
            ["-v", "--verbose"],
            count=True,
            expose_value=False,
            callback=_more,
            help="Say on stderr what is done; -vv says more.",
        ),
        click.Option(
            ["-q", "--quiet"],
            is_flag=True,
            expose_value=False,
            callback=_less,
            help="Print only errors, and data that programs read.",
        ),
    ]
    return command
