"""Our records in the types of the language server protocol."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.uris import from_fs_path, to_fs_path

from smartmem_rules.language import syntax as s
from smartmem_rules.language.codes import EXPLANATIONS
from smartmem_rules.language.diagnostics import Diagnostic
from smartmem_rules.language.fixes import Fix
from smartmem_rules.lsp.signatures import Signature


def to_path(uri: str) -> Path:
    """The file at an address."""
    return Path(to_fs_path(uri) or uri)


def to_uri(file: str) -> str:
    """The address of a file."""
    return from_fs_path(str(Path(file).resolve())) or file


def to_range(span: s.Span) -> lsp.Range:
    """A range of the protocol, which counts from 0."""
    start = lsp.Position(line=max(span.line - 1, 0), character=max(span.column - 1, 0))
    return lsp.Range(
        start=start, end=lsp.Position(line=max(span.end_line - 1, 0), character=max(span.end_column - 1, 0))
    )


def to_location(span: s.Span) -> lsp.Location:
    """A place with its file."""
    return lsp.Location(uri=to_uri(span.file), range=to_range(span))


def to_diagnostic(one: Diagnostic) -> lsp.Diagnostic:
    """A message, with its explanation and its fix as data: `kind` is `edit` or `advice`."""
    severity = lsp.DiagnosticSeverity.Error if one.severity == "error" else lsp.DiagnosticSeverity.Warning
    text = "\n".join(part for part in (one.message, one.note and f"note: {one.note}", f"fix: {one.fix}") if part)
    related = None
    if one.secondary is not None:
        span, label = one.secondary
        related = [lsp.DiagnosticRelatedInformation(location=to_location(span), message=label)]
    return lsp.Diagnostic(
        range=to_range(one.span),
        severity=severity,
        code=str(one.code),
        source="smartmem",
        message=text,
        related_information=related,
        data={"explanation": EXPLANATIONS[one.code], "fix": _fix_data(one.fix)},
    )


def _fix_data(fix: Fix | None) -> dict[str, Any] | None:
    if fix is None:
        return None
    edits = [{"range": to_range(one.span), "newText": one.text} for one in fix.edits]
    return {"kind": fix.kind, "text": fix.text, "edits": edits}


def meets(one: Diagnostic, place: lsp.Range) -> bool:
    """Whether a message is about something in a range."""
    own = to_range(one.span)
    begins, ends = (own.start.line, own.start.character), (own.end.line, own.end.character)
    return begins <= (place.end.line, place.end.character) and (place.start.line, place.start.character) <= ends


def quick_fix(one: Diagnostic, fix: Fix) -> lsp.CodeAction:
    """The action that mends what a message is about; advice is an action that is disabled and says why."""
    action = lsp.CodeAction(fix.text, lsp.CodeActionKind.QuickFix, [to_diagnostic(one)], data={"kind": fix.kind})
    if fix.kind == "advice":
        action.disabled = lsp.CodeActionDisabled(reason=f"the author has to decide: {fix.text}")
        return action
    changes: dict[str, list[lsp.TextEdit]] = {}
    for edit in fix.edits:
        made = lsp.TextEdit(range=to_range(edit.span), new_text=edit.text)
        changes.setdefault(to_uri(edit.span.file), []).append(made)
    action.edit = lsp.WorkspaceEdit(changes=changes)
    action.is_preferred = True
    return action


def to_signature_help(found: Sequence[Signature]) -> lsp.SignatureHelp:
    """The ways to call something, the first of them chosen."""
    made = [
        lsp.SignatureInformation(
            label=one.label,
            documentation=one.meaning or None,
            parameters=[lsp.ParameterInformation(label=parameter) for parameter in one.parameters],
            active_parameter=one.active,
        )
        for one in found
    ]
    return lsp.SignatureHelp(signatures=made, active_signature=0, active_parameter=found[0].active)
