"""The protocol side of the language server: requests of an editor to the library and back."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from smartmem_rules.language import syntax as s
from smartmem_rules.language.diagnostics import Diagnostic, LanguageError
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.language.printing.builtin_docs import KEYWORDS
from smartmem_rules.language.printing.formatter import format_text
from smartmem_rules.language.printing.printer import print_equation, print_signature
from smartmem_rules.language.vocabulary import ALL_FUNCTIONS, DTYPE_WORDS, VALUE_WORDS
from smartmem_rules.lsp.completion import complete
from smartmem_rules.lsp.conversion import (
    meets,
    quick_fix,
    to_diagnostic,
    to_location,
    to_path,
    to_range,
    to_signature_help,
    to_uri,
)
from smartmem_rules.lsp.hover import hover, word_text
from smartmem_rules.lsp.library import Library
from smartmem_rules.lsp.signatures import signatures
from smartmem_rules.lsp.symbols import GLOBAL, Symbol
from smartmem_rules.rulebase.identity import is_shipped

_NAME = re.compile(r"[A-Za-z_]\w*")
_COMPLETIONS = {
    "operator": lsp.CompletionItemKind.Class,
    "attribute": lsp.CompletionItemKind.Field,
    "function": lsp.CompletionItemKind.Function,
    "keyword": lsp.CompletionItemKind.Keyword,
    "key": lsp.CompletionItemKind.Property,
    "value": lsp.CompletionItemKind.EnumMember,
    "constant": lsp.CompletionItemKind.Constant,
    "type": lsp.CompletionItemKind.TypeParameter,
}


class RuleServer(LanguageServer):
    """A language server with the rule files it knows."""

    def __init__(self) -> None:
        super().__init__("smartmem", "1", text_document_sync_kind=lsp.TextDocumentSyncKind.Incremental)
        self.library = Library()
        self.found: dict[str, list[Diagnostic]] = {}

    def refresh(self, uri: str) -> None:
        """Read a document again and send what is wrong with it."""
        document = self.workspace.get_text_document(uri)
        path = to_path(uri)
        self.library.open(path, document.source)
        self.found[uri] = self.library.diagnostics(path)
        found = [to_diagnostic(one) for one in self.found[uri]]
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri=uri, diagnostics=found, version=document.version)
        )


server = RuleServer()


@server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
def did_open(rules: RuleServer, params: lsp.DidOpenTextDocumentParams) -> None:
    """A file is opened."""
    rules.refresh(params.text_document.uri)


@server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
def did_change(rules: RuleServer, params: lsp.DidChangeTextDocumentParams) -> None:
    """A file is edited."""
    rules.refresh(params.text_document.uri)


@server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
def did_close(rules: RuleServer, params: lsp.DidCloseTextDocumentParams) -> None:
    """A file is closed: what lies on disk counts again."""
    rules.library.close(to_path(params.text_document.uri))
    rules.found.pop(params.text_document.uri, None)


@server.feature(lsp.TEXT_DOCUMENT_HOVER)
def on_hover(rules: RuleServer, params: lsp.HoverParams) -> lsp.Hover | None:
    """What a name means."""
    path, line, column = _place(params)
    found = rules.library.at(path, line, column)
    text = hover(rules.library, found.symbol) if found is not None else None
    if text is None:
        word = _word_at(rules, params)
        text = word_text(word) if word else None
    if text is None:
        return None
    content = lsp.MarkupContent(kind=lsp.MarkupKind.Markdown, value=text)
    return lsp.Hover(contents=content, range=to_range(found.span) if found is not None else None)


@server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
def on_definition(rules: RuleServer, params: lsp.DefinitionParams) -> list[lsp.Location] | None:
    """Where a name is defined; an import leads to its file."""
    path, line, column = _place(params)
    found = rules.library.at(path, line, column)
    if found is None:
        return _import_at(rules, path, line)
    return [to_location(one.span) for one in rules.library.definitions(found.symbol)]


@server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
def on_references(rules: RuleServer, params: lsp.ReferenceParams) -> list[lsp.Location]:
    """All places of a name."""
    found = rules.library.at(*_place(params))
    if found is None:
        return []
    places = rules.library.references(found.symbol)
    return [to_location(one.span) for one in places if params.context.include_declaration or not one.is_definition]


@server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
def on_prepare_rename(rules: RuleServer, params: lsp.PrepareRenameParams) -> lsp.Range | None:
    """Whether there is a name to change."""
    found = rules.library.at(*_place(params))
    if found is None or not rules.library.definitions(found.symbol):
        return None
    return to_range(found.span)


@server.feature(lsp.TEXT_DOCUMENT_RENAME)
def on_rename(rules: RuleServer, params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
    """Another name everywhere."""
    if not _NAME.fullmatch(params.new_name):
        raise JsonRpcInvalidParams(f"{params.new_name!r} is no name")
    found = rules.library.at(*_place(params))
    if found is None or not rules.library.definitions(found.symbol):
        return None
    if found.symbol.scope == GLOBAL and found.symbol.name[:1].isupper() != params.new_name[:1].isupper():
        raise JsonRpcInvalidParams(
            "operators and constants begin with an upper-case letter, all else with a lower-case one"
        )
    refusal = _no_rename(rules, found.symbol, params.new_name)
    if refusal is not None:
        raise JsonRpcInvalidParams(refusal)
    changes: dict[str, list[lsp.TextEdit]] = {}
    for one in rules.library.references(found.symbol):
        edit = lsp.TextEdit(range=to_range(one.span), new_text=params.new_name)
        changes.setdefault(to_uri(one.span.file), []).append(edit)
    return lsp.WorkspaceEdit(changes=changes)


def _no_rename(rules: RuleServer, symbol: Symbol, name: str) -> str | None:
    """Why a symbol does not get a name; None where it may."""
    if name in KEYWORDS or name in ALL_FUNCTIONS or name in DTYPE_WORDS or name in (*VALUE_WORDS, "inf"):
        return f"`{name}` is a word of the rule language"
    if name != symbol.name and rules.library.definitions(replace(symbol, name=name)):
        return f"there is a {symbol.kind} `{name}` already"
    if any(is_shipped(one.span.file) for one in rules.library.definitions(symbol)):
        return f"`{symbol.name}` is defined in a built-in file, which stays as it is"
    return None


@server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix]))
def on_code_action(rules: RuleServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    """How to mend what is wrong in a range: edits, and advice as actions that say why they edit nothing."""
    uri = params.text_document.uri
    return [quick_fix(one, fix) for one in rules.found.get(uri, ()) if meets(one, params.range) and (fix := one.fix)]


@server.feature(lsp.TEXT_DOCUMENT_SIGNATURE_HELP, lsp.SignatureHelpOptions(trigger_characters=["(", ",", ";", "="]))
def on_signature_help(rules: RuleServer, params: lsp.SignatureHelpParams) -> lsp.SignatureHelp | None:
    """How to call what is being called."""
    document = rules.workspace.get_text_document(params.text_document.uri)
    found = signatures(rules.library, document.source, params.position.line, params.position.character)
    return to_signature_help(found) if found else None


@server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=[";", "("]))
def on_completion(rules: RuleServer, params: lsp.CompletionParams) -> lsp.CompletionList:
    """Words that fit."""
    document = rules.workspace.get_text_document(params.text_document.uri)
    offers = complete(rules.library, document.source, params.position.line, params.position.character)
    items = [
        lsp.CompletionItem(label=one.word, kind=_COMPLETIONS[one.kind], detail=one.detail or None) for one in offers
    ]
    return lsp.CompletionList(is_incomplete=False, items=items)


@server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
def on_formatting(rules: RuleServer, params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit] | None:
    """The whole text laid out; nothing while it does not parse."""
    text = rules.workspace.get_text_document(params.text_document.uri).source
    try:
        module = parse_text(text)
        made = format_text(text)
        if made == text or parse_text(made) != module:
            return None
    except LanguageError:
        return None
    end = lsp.Position(line=text.count("\n") + 1, character=0)
    return [lsp.TextEdit(range=lsp.Range(start=lsp.Position(line=0, character=0), end=end), new_text=made)]


@server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
def on_symbols(rules: RuleServer, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
    """The items of a file."""
    module = rules.library.module(to_path(params.text_document.uri))
    return [made for item in module.items if (made := _symbol(item)) is not None] if module is not None else []


def _symbol(item: s.Item) -> lsp.DocumentSymbol | None:
    kinds = {
        s.Operator: lsp.SymbolKind.Class,
        s.Function: lsp.SymbolKind.Function,
        s.Predicate: lsp.SymbolKind.Boolean,
        s.Constant: lsp.SymbolKind.Constant,
        s.Ruleset: lsp.SymbolKind.Namespace,
        s.Table: lsp.SymbolKind.Array,
        s.Block: lsp.SymbolKind.Struct,
    }
    if isinstance(item, s.Import):
        return None
    if isinstance(item, s.Family):
        inner = [made for one in item.items if (made := _symbol(one)) is not None]
        name = f"for {', '.join(item.variables)}"
        place = to_range(item.span)
        kind = lsp.SymbolKind.Namespace
        return lsp.DocumentSymbol(name=name, kind=kind, range=place, selection_range=place, children=inner)
    detail = print_signature(item) if isinstance(item, s.Operator) else None
    if isinstance(item, s.Rule):
        detail = item.comment or print_equation(item)
    return lsp.DocumentSymbol(
        name=item.name,
        detail=detail,
        kind=kinds.get(type(item), lsp.SymbolKind.Event),
        range=to_range(item.span),
        selection_range=to_range(item.place("name")),
    )


def _import_at(rules: RuleServer, path: Path, line: int) -> list[lsp.Location] | None:
    module = rules.library.module(path)
    for item in module.items if module is not None else ():
        if isinstance(item, s.Import) and item.span.line == line:
            target = path.parent / item.path
            if target.is_file():
                return [to_location(s.Span(str(target), 1, 1, 1, 1))]
    return None


def _word_at(rules: RuleServer, params: lsp.HoverParams) -> str:
    document = rules.workspace.get_text_document(params.text_document.uri)
    return document.word_at_position(params.position)


def _place(
    params: lsp.TextDocumentPositionParams
    | lsp.HoverParams
    | lsp.DefinitionParams
    | lsp.ReferenceParams
    | lsp.RenameParams
    | lsp.PrepareRenameParams,
) -> tuple[Path, int, int]:
    return to_path(params.text_document.uri), params.position.line + 1, params.position.character + 1
