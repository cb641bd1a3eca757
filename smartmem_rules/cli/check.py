"""`smartmem check`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from smartmem_rules.cli.common import BAD_INPUT, fail, json_option, print_json, reports_errors

if TYPE_CHECKING:
    from smartmem_rules.language.diagnostics import Diagnostic
    from smartmem_rules.language.syntax import Span


@click.command("check")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@json_option
@reports_errors
def command(files: tuple[Path, ...], as_json: bool) -> None:
    """Check rule FILES (or all rule files in folders) together with the built-in rules; all errors are shown."""
    from smartmem_rules.language.diagnostics import render

    paths = _rule_files(files)
    found, sources = _diagnostics(paths)
    errors = sum(one.severity == "error" for one in found)
    if as_json:
        print_json(
            {
                "files": [str(path) for path in paths],
                "errors": errors,
                "warnings": len(found) - errors,
                "diagnostics": [_data(one) for one in found],
            }
        )
    else:
        click.echo(render(found, sources))
    if errors:
        sys.exit(BAD_INPUT)


def _rule_files(files: tuple[Path, ...]) -> list[Path]:
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


def _diagnostics(paths: list[Path]) -> tuple[list[Diagnostic], dict[str, str]]:
    """What is wrong with the files: of those that do not parse the syntax errors, of the others all else."""
    from smartmem_rules.language.checker import check
    from smartmem_rules.language.diagnostics import LanguageError
    from smartmem_rules.language.rulebase import load_modules
    from smartmem_rules.resources import rules_path

    asked = {path.resolve() for path in paths}
    built_in = [path for path in sorted(rules_path().rglob("*.smr")) if path.resolve() not in asked]
    found: list[Diagnostic] = []
    sources: dict[str, str] = {}
    modules = load_modules(built_in)
    known = {Path(module.span.file).resolve() for module in modules}
    for path in paths:
        if path.resolve() in known:
            continue
        try:
            loaded = load_modules([path], known)
        except LanguageError as error:
            found += error.diagnostics
            sources.update(error.sources)
            known.add(path.resolve())
            continue
        modules += loaded
        known |= {Path(module.span.file).resolve() for module in loaded}
    found += check(modules)
    sources.update({module.span.file: module.text for module in modules})
    return found, sources


def _data(one: Diagnostic) -> dict[str, Any]:
    second = None
    if one.secondary is not None:
        second = {**_place(one.secondary[0]), "label": one.secondary[1]}
    return {
        "code": str(one.code),
        "severity": one.severity,
        "message": one.message,
        **_place(one.span),
        "label": one.label,
        "secondary": second,
        "note": one.note,
        "fix": one.fix,
    }


def _place(span: Span) -> dict[str, Any]:
    return {
        "file": span.file,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }
