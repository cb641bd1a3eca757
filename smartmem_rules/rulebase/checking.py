"""Checks files as a whole: each with its imports, together with the built-in rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from smartmem_rules.language import syntax as s
from smartmem_rules.language.diagnostics import Diagnostic, LanguageError
from smartmem_rules.language.parsing.parser import parse_text
from smartmem_rules.resources import rules_path
from smartmem_rules.rulebase.base import load_modules
from smartmem_rules.rulebase.checks.checker import check

Report = tuple[list[Diagnostic], dict[str, str]]
"""Messages in the order of the text, and the texts that they point into."""


def check_files(paths: Sequence[Path], texts: Mapping[Path, str] | None = None) -> Report:
    """What is wrong with files: of those that do not parse the syntax errors, of the others all else.

    Args:
        texts: what stands in files that an editor holds open, by resolved path.

    The built-in rules take part where they are not among the files; what is wrong with them alone is not reported.
    """
    texts = texts or {}
    asked = {path.resolve() for path in paths}
    built_in = [path for path in sorted(rules_path().rglob("*.smr")) if path.resolve() not in asked]
    found: list[Diagnostic] = []
    sources: dict[str, str] = {}
    modules = load_modules(built_in)
    known = {Path(module.span.file).resolve() for module in modules}
    meant: set[str] = set()
    for path in paths:
        if path.resolve() in known:
            continue
        try:
            loaded = _load(path, known, texts)
        except LanguageError as error:
            found += error.diagnostics
            sources.update(error.sources)
            known.add(path.resolve())
            continue
        modules += loaded
        meant |= {module.span.file for module in loaded}
        known |= {Path(module.span.file).resolve() for module in loaded}
    found += check(modules, deep=meant, only=meant)
    sources.update({module.span.file: module.text for module in modules})
    return found, sources


def _load(path: Path, known: set[Path], texts: Mapping[Path, str]) -> list[s.Module]:
    text = texts.get(path.resolve())
    if text is None:
        return load_modules([path], known)
    module = parse_text(text, str(path))
    imports = [path.parent / item.path for item in module.items if isinstance(item, s.Import)]
    there = [target for target in imports if target.is_file() and target.resolve() != path.resolve()]
    loaded = load_modules(there, {*known, path.resolve()})
    return [*loaded, module]
