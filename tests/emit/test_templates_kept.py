"""Templates as Python are kept on disk, and a damaged file is like none."""

from __future__ import annotations

from pathlib import Path

import pytest

from smartmem_rules.emit.c import program


def test_templates_come_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMARTMEM_CACHE", str(tmp_path))
    first = program._environment.__wrapped__().get_template("scan.cl")
    (kept,) = tmp_path.rglob("*.template")
    content = kept.read_bytes()
    monkeypatch.setattr(program.jinja2.Environment, "compile", lambda *given, **named: pytest.fail("translated again"))
    again = program._environment.__wrapped__().get_template("scan.cl")
    assert again.root_render_func.__code__ == first.root_render_func.__code__
    monkeypatch.undo()
    monkeypatch.setenv("SMARTMEM_CACHE", str(tmp_path))
    for damaged in (content[: len(content) // 2], content[:30], b"", b"damaged"):
        kept.write_bytes(damaged)
        program._environment.__wrapped__().get_template("scan.cl")
        assert kept.read_bytes() == content
