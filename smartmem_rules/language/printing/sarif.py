"""Diagnostics in SARIF 2.1.0, the form in which editors and code hosts take the results of checkers."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from smartmem_rules.language.codes import EXPLANATIONS, Code
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.syntax import Span

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(diagnostics: Sequence[Diagnostic]) -> dict[str, Any]:
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
    text = "\n".join(
        part for part in (one.message, one.note and f"note: {one.note}", one.fix and f"fix: {one.fix}") if part
    )
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
    properties = {name: value for name, value in (("label", one.label), ("note", one.note), ("fix", one.fix)) if value}
    if properties:
        result["properties"] = properties
    return result


def _location(span: Span) -> dict[str, Any]:
    path = Path(span.file)
    region = {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }
    artifact = {"uri": path.as_uri() if path.is_absolute() else path.as_posix()}
    return {"physicalLocation": {"artifactLocation": artifact, "region": region}}
