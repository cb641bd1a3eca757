"""`smartmem check`."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import click

from smartmem_rules.cli.common import BAD_INPUT, fail, print_json, reports_errors, say
from smartmem_rules.cli.verbosity import is_quiet


@click.command("check")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--watch", is_flag=True, help="Check again whenever a file changes, until interrupted.")
@click.option("--json", "as_json", is_flag=True, help="Print the messages as SARIF 2.1.0 only.")
@reports_errors
def command(files: tuple[Path, ...], watch: bool, as_json: bool) -> None:
    """Check rule FILES (or all rule files in folders) together with the built-in rules; all errors are shown."""
    if not watch:
        gc.disable()  # this process ends before its garbage matters
    errors = _report(files, as_json)
    if watch:
        _watch(files, as_json)
    elif errors:
        sys.exit(BAD_INPUT)


def rule_files(files: tuple[Path, ...]) -> list[Path]:
    """The files, and for each folder all rule files in it."""
    paths: list[Path] = []
    for path in files:
        if path.is_dir():
            inside = sorted(path.rglob("*.smr"))
            if not inside:
                fail(f"{path}: the folder holds no rule file (.smr)")
            paths += inside
        elif path.is_file():
            paths.append(path)
        else:
            fail(f"{path}: there is no such file")
    return paths


def _report(files: tuple[Path, ...], as_json: bool) -> int:
    from smartmem_rules.language.diagnostics import render  # start-up time
    from smartmem_rules.language.printing.sarif import sarif  # start-up time
    from smartmem_rules.rulebase.checking import check_files  # start-up time

    found, sources = check_files(rule_files(files))
    if as_json:
        print_json(sarif(found))
    elif is_quiet():
        if wrong := [one for one in found if one.severity == "error"]:
            click.echo(render(wrong, sources))
    else:
        click.echo(render(found, sources))
    errors = sum(one.severity == "error" for one in found)
    if not errors and not as_json and not is_quiet():
        _show_reads(rule_files(files))
    return errors


def _show_reads(files: list[Path]) -> None:
    """How many reads of the files' definitions are proved to stay inside their tensors."""
    from smartmem_rules.resources import rules_path  # start-up time
    from smartmem_rules.rulebase.base import collect, load_modules  # start-up time
    from smartmem_rules.verification.reads import count_reads  # start-up time

    built_in = load_modules(sorted(rules_path().rglob("*.smr")))
    known = {Path(module.span.file).resolve() for module in built_in}
    base = collect(load_modules([path for path in files if path.resolve() not in known], known), built_in)
    counted = count_reads(base, files)
    if counted.total:
        say(str(counted))


def _watch(files: tuple[Path, ...], as_json: bool) -> None:
    try:
        from watchfiles import watch
    except ImportError:
        fail("--watch needs the package watchfiles: pip install 'smartmem-rules[watch]'")
    for _ in watch(*files, debounce=50, watch_filter=lambda _, path: path.endswith(".smr"), raise_interrupt=False):
        if not as_json and sys.stdout.isatty():
            click.clear()
        _report(files, as_json)
