"""The rule files that an editor works on: what stands in open files, the files they import, and the built-in rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from smartmem_rules.language import syntax as s
from smartmem_rules.language.diagnostics import Diagnostic, LanguageError
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.lsp.symbols import Occurrence, Symbol, occurrences
from smartmem_rules.records import dataclass
from smartmem_rules.resources import rules_path
from smartmem_rules.rulebase.base import RuleBase, collect, load_modules
from smartmem_rules.rulebase.checking import check_files


@dataclass
class Library:
    """Open texts by path; the last tree that each gave serves while it does not parse."""

    texts: dict[Path, str] = field(default_factory=dict)
    _trees: dict[Path, tuple[str, s.Module]] = field(default_factory=dict)
    _found: dict[int, tuple[s.Module, list[Occurrence]]] = field(default_factory=dict)

    def open(self, path: Path, text: str) -> None:
        """Take a text for a file, whatever lies on disk."""
        self.texts[path.resolve()] = text

    def close(self, path: Path) -> None:
        """Go back to what lies on disk."""
        self.texts.pop(path.resolve(), None)
        self._trees.pop(path.resolve(), None)

    def diagnostics(self, path: Path) -> list[Diagnostic]:
        """What is wrong with an open file."""
        found, _ = check_files([path], self.texts)
        return [one for one in found if Path(one.span.file).resolve() == path.resolve()]

    def module(self, path: Path) -> s.Module | None:
        """The tree of an open file, an older one while it does not parse."""
        resolved = path.resolve()
        text = self.texts.get(resolved)
        known = self._trees.get(resolved)
        if text is None:
            return None
        if known is None or known[0] != text:
            try:
                module = parse_text(text, str(path))
            except LanguageError:
                return known[1] if known is not None else None
            self._trees[resolved] = (text, module)
            return module
        return known[1]

    def modules(self) -> list[s.Module]:
        """The built-in files and the open ones with their imports."""
        own = [module for path in self.texts if (module := self.module(path)) is not None]
        known = {Path(module.span.file).resolve() for module in own}
        others = [path for path in sorted(rules_path().rglob("*.smr")) if path.resolve() not in known]
        imports = [
            target
            for module in own
            for item in module.items
            if isinstance(item, s.Import) and (target := Path(module.span.file).parent / item.path).is_file()
        ]
        try:
            return [*load_modules([*others, *imports], known), *own]
        except LanguageError:
            return own

    def rules(self) -> RuleBase:
        """The rule base of all files."""
        return collect([], self.modules())

    # --- names ---

    def occurrences(self) -> Iterator[Occurrence]:
        """All places of all names in all files."""
        for module in self.modules():
            yield from self._of(module)

    def _of(self, module: s.Module) -> list[Occurrence]:
        known = self._found.get(id(module))
        if known is None or known[0] is not module:
            known = self._found[id(module)] = (module, occurrences(module))
        return known[1]

    def at(self, path: Path, line: int, column: int) -> Occurrence | None:
        """The narrowest name at a place of an open file, line and column from 1."""
        module = self.module(path)
        if module is None:
            return None
        here = [
            one
            for one in self._of(module)
            if one.span.line == line and one.span.column <= column <= one.span.end_column
        ]
        return min(here, key=lambda one: (one.span.end_column - one.span.column, not one.is_definition), default=None)

    def definitions(self, symbol: Symbol) -> list[Occurrence]:
        """Where a name is defined."""
        return [one for one in self.occurrences() if one.symbol == symbol and one.is_definition]

    def references(self, symbol: Symbol) -> list[Occurrence]:
        """All places of a name."""
        once: dict[s.Span, Occurrence] = {}
        for one in self.occurrences():
            if one.symbol == symbol and (one.span not in once or one.is_definition):
                once[one.span] = one
        return list(once.values())
