"""Results that are found again for the same tree, and for no other one."""

from __future__ import annotations

from smartmem_rules.language import syntax as s
from smartmem_rules.language.by_identity import ByIdentity

ONE, SAME_TEXT, OTHER = (s.Number(s.NOWHERE, value) for value in (1, 1, 2))


def test_each_tree_is_computed_once() -> None:
    computed: list[s.Number] = []
    known: ByIdentity[s.Number, int] = ByIdentity(8)

    def double(node: s.Number) -> int:
        computed.append(node)
        return int(node.value) * 2

    assert [known.get(node, double) for node in (ONE, OTHER, ONE, SAME_TEXT)] == [2, 4, 2, 2]
    assert [id(node) for node in computed] == [id(ONE), id(OTHER), id(SAME_TEXT)]


def test_the_oldest_results_go() -> None:
    known: ByIdentity[s.Number, str] = ByIdentity(2)
    for node in (ONE, SAME_TEXT, OTHER):
        known.get(node, lambda _: "first")
    assert known.get(OTHER, lambda _: "again") == "first"
    assert known.get(ONE, lambda _: "again") == "again"
