"""The directives that fill the pages of the rule base: what `smartmem docs` writes as HTML, as parts of the site."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from smartmem_rules.reference.content import Entry, Section, language, sections
from smartmem_rules.rulebase.base import load_rules
from smartmem_rules.rulebase.verdicts import shipped

_CODE = re.compile(r"`([^`]+)`")


@cache
def _sections() -> dict[str, Section]:
    base = load_rules(())
    return {one.name: one for one in sections(base, shipped(base))}


class RuleSection(Directive):
    """`rules-of`: all entries of the sections that its arguments name."""

    required_arguments = 1
    optional_arguments = 20

    def run(self) -> list[nodes.Node]:
        return [self._section(_sections()[name]) for name in self.arguments]

    def _section(self, section: Section) -> nodes.section:
        title = nodes.title("", f"{section.title} ({len(section.entries)})")
        made = nodes.section("", title, ids=[section.name], names=[section.name])
        for entry in section.entries:
            made += self._entry(section, entry)
        return made

    def _entry(self, section: Section, entry: Entry) -> nodes.section:
        anchor = f"{section.name}-{entry.anchor}"
        made = nodes.section("", nodes.title("", entry.name), ids=[anchor], names=[anchor], classes=["entry"])
        if entry.summary:
            made += nodes.paragraph("", "", *_inline(entry.summary))
        code = nodes.literal_block(entry.code, entry.code)
        code["language"] = "smr"
        made += code
        place = ("file", f"`rules/{entry.file}`, line {entry.line}")
        made += _table([*entry.facts, place])
        return made


class RuleLanguage(Directive):
    """`rule-language`: the built-in functions, and the keys of blocks."""

    def run(self) -> list[nodes.Node]:
        said = language()
        parts = [
            _titled(f"Functions {of}", [(f"`{call}`", meaning) for call, meaning in found.values()])
            for of, found in said["functions"]
        ]
        for kind, keys in said["blocks"].items():
            rows = []
            for key in keys:
                choices = f": {', '.join(key.choices)}" if key.choices else ""
                given = "required" if key.required else f"default: {key.default}"
                rows.append((f"`{key.name}`", f"{key.meaning}{choices} ({given})"))
            parts.append(_titled(f"Keys of {kind}", rows))
        return list(parts)


def _titled(title: str, rows: Iterable[tuple[str, str]]) -> nodes.section:
    name = nodes.make_id(title)
    return nodes.section("", nodes.title("", title), _table(rows), ids=[name], names=[name])


def _table(rows: Iterable[tuple[str, str]]) -> nodes.definition_list:
    made = nodes.definition_list(classes=["facts"])
    for name, value in rows:
        term = nodes.term("", "", *_inline(name))
        made += nodes.definition_list_item("", term, nodes.definition("", nodes.paragraph("", "", *_inline(value))))
    return made


def _inline(text: str) -> list[nodes.Node]:
    """Text with what stands between backquotes as code."""
    parts = _CODE.split(text)
    return [nodes.literal("", part) if place % 2 else nodes.Text(part) for place, part in enumerate(parts) if part]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("rules-of", RuleSection)
    app.add_directive("rule-language", RuleLanguage)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
