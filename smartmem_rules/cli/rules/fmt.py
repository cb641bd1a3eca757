"""`smartmem fmt`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from smartmem_rules.cli.common import answer_no, fail, reports_errors, say
from smartmem_rules.cli.rules.check import rule_files
from smartmem_rules.whole_files import write_whole


@click.command("fmt")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, allow_dash=True))
@click.option("--check", "only_check", is_flag=True, help="Change nothing; exit with 1 where a file would change.")
@reports_errors
def command(files: tuple[Path, ...], only_check: bool) -> None:
    """Lay out rule FILES (or all rule files in folders); `-` reads stdin and writes stdout.

    Indentation, spaces and tables are set, and what does not fit into 120 columns is broken; other line breaks,
    comments and columns that line up stay; a byte order mark goes.  A file that does not parse is left
    alone.
    """
    from smartmem_rules.language.parsing.source import read_source  # start-up time

    if files == (Path("-"),):
        click.echo(_formatted(sys.stdin.read(), "<stdin>"), nl=False)
        return
    changed = []
    for path in rule_files(files):
        source = read_source(path)
        text = source.text.replace("\r\n", "\n")
        made = _formatted(text, str(path))
        if made != text or source.marked:
            changed.append(path)
            say(f"{'would format' if only_check else 'formatted'} {path}")
            if not only_check:
                _replace(path, made)
    if only_check and changed:
        answer_no(*(f"would format {path}" for path in changed))


def _replace(path: Path, text: str) -> None:
    try:
        write_whole(path, text.encode())
    except OSError as error:
        fail(f"{path}: the file cannot be written ({error.strerror or error})")


def _formatted(text: str, name: str) -> str:
    """The text laid out; raises LanguageError where it does not parse."""
    from smartmem_rules.language.parsing.parser import parse_text  # start-up time
    from smartmem_rules.language.printing.formatter import format_text  # start-up time

    module = parse_text(text, name)
    made = format_text(text)
    # what the formatter cannot lay out safely stays as it is
    return made if parse_text(made, name) == module else text
