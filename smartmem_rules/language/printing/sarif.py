"""Diagnostics in SARIF 2.1.0, the form in which editors and code hosts take the results of checkers."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from smartmem_rules.language.codes import EXPLANATIONS, Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.fixes import Fix
from smartmem_rules.language.syntax import Span

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(diagnostics: Sequence[Diagnostic]) -> dict[str, object]:
    """One run with all codes as its rules."""
    codes = list(Code)
    rules = [
        {
            "id": str(code),
            "name": code.name.title().replace("_", ""),
            "shortDescription": {"text": EXPLANATIONS[code]},
            "help": {"text": f"{EXPLANATIONS[code]} See docs/errors/{code}.md."},
        }
        for code in codes
    ]
    driver = {"name": "smartmem", "version": _version(), "rules": rules}
    results = [_result(one, codes.index(one.code)) for one in diagnostics]
    columns = "unicodeCodePoints"
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": columns, "results": results}],
    }


def _version() -> str:
    try:
        return version("smartmem-rules")
    except PackageNotFoundError:
        return "0"


def _result(one: Diagnostic, rule: int) -> dict[str, Any]:
    text = "\n".join(part for part in (one.message, one.note and f"note: {one.note}", f"fix: {one.fix}") if part)
    result: dict[str, Any] = {
        "ruleId": str(one.code),
        "ruleIndex": rule,
        "level": one.severity,
        "message": {"text": text},
        "locations": [_location(one.span)] if one.span.line else [],
    }
    if one.secondary is not None:
        span, label = one.secondary
        result["relatedLocations"] = [{**_location(span), "id": 0, "message": {"text": label}}]
    fix = one.fix
    said = {"label": one.label, "note": one.note, "fix": fix and fix.text, "fixKind": fix and fix.kind}
    properties = {name: value for name, value in said.items() if value}
    if properties:
        result["properties"] = properties
    if fix is not None and fix.edits:
        result["fixes"] = [_fix(fix)]
    return result


def _fix(fix: Fix) -> dict[str, Any]:
    replacements: dict[str, list[dict[str, Any]]] = {}
    for edit in fix.edits:
        inserted = {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.text}}
        replacements.setdefault(edit.span.file, []).append(inserted)
    changes = [{"artifactLocation": _artifact(file), "replacements": made} for file, made in replacements.items()]
    return {"description": {"text": fix.text}, "artifactChanges": changes}


def _location(span: Span) -> dict[str, Any]:
    return {"physicalLocation": {"artifactLocation": _artifact(span.file), "region": _region(span)}}


def _artifact(file: str) -> dict[str, str]:
    path = Path(file)
    return {"uri": path.as_uri() if path.is_absolute() else path.as_posix()}


def _region(span: Span) -> dict[str, int]:
    return {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }
