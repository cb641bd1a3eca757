"""Operators that are read when they are asked for are those that were packed, and few are read for a model."""

from __future__ import annotations

import pickle
from copy import copy
from pathlib import Path

import pytest

from smartmem_rules.graph.importer import import_model
from smartmem_rules.resources import rules_path
from smartmem_rules.rulebase import base as loading
from smartmem_rules.rulebase.base import RuleBase, collect, load_modules, load_rules
from smartmem_rules.rulebase.packed import Index, PackedOperators
from tests.cli import onnx_files


@pytest.fixture(scope="module")
def whole() -> RuleBase:
    """The built-in rules as they are collected."""
    return collect([], load_modules(sorted(rules_path().rglob("*.smr"))))


def test_what_is_read_is_what_was_packed_in_its_order(whole: RuleBase) -> None:
    packed = PackedOperators(whole.operators)
    assert list(packed) == list(whole.operators)
    assert len(packed) == len(whole.operators)
    assert "Relu" in packed
    assert "Nothing" not in packed
    assert packed.get("Nothing") is None
    assert dict(packed) == whole.operators
    assert Index.of(pickle.loads(pickle.dumps(packed))) == Index.of(dict(packed)) == Index.of(whole.operators)


def test_copies_are_changed_by_themselves_and_share_operators(whole: RuleBase) -> None:
    first = PackedOperators(whole.operators)
    second = copy(first)
    assert first["Add"][0] is second["Add"][0]
    second["Add"].append(first["Sub"][0])
    second["Relu"] = []
    del second["Gather"]
    assert first["Add"] == whole.operators["Add"]
    assert first["Relu"] == whole.operators["Relu"]
    assert "Gather" in first
    assert "Gather" not in second
    assert ("ai.onnx", "Relu") not in Index.of(second).bound
    assert ("ai.onnx", "Relu") in Index.of(first).bound


def test_a_changed_operator_counts_as_what_it_became(whole: RuleBase) -> None:
    packed = PackedOperators(whole.operators)
    assert "Add" in Index.of(packed).commutative
    packed["Add"] = packed["Sub"]
    assert "Add" not in Index.of(packed).commutative


def test_an_import_reads_the_operators_of_its_model(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMARTMEM_CACHE", str(tmp_path_factory.mktemp("cache")))
    read: list[str] = []
    overloads = PackedOperators._overloads
    monkeypatch.setattr(PackedOperators, "_overloads", lambda self, name: read.append(name) or overloads(self, name))
    for times in range(2):  # as they are collected, and from the cache
        loading._built_in.cache_clear()
        read.clear()
        graph = import_model(onnx_files.chain(tmp_path / "chain.onnx"), load_rules())
        assert {node.operator for node in graph.nodes} <= {*read}, times
        assert len({*read}) < 10, times
    loading._built_in.cache_clear()
