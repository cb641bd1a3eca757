"""Documents that break their lines: every way to break a small one is compared with the way that is chosen."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, strategies as st

from smartmem_rules.language.printing.layout import (
    Align,
    Comment,
    Concat,
    Document,
    Fill,
    Group,
    Line,
    Nest,
    Text,
    render,
)

WORDS = st.text("ab", min_size=1, max_size=8).map(Text)


def documents() -> st.SearchStrategy[Document]:
    """Documents whose words are separated by places to break."""

    def larger(inner: st.SearchStrategy[Document]) -> st.SearchStrategy[Document]:
        lists = st.lists(inner, min_size=1, max_size=4)
        lined = lists.map(lambda parts: Concat(tuple(part for one in parts for part in (Line(), one))[1:]))
        return st.one_of(
            lined.map(Group),
            lists.map(lambda parts: Fill(tuple(parts))),
            inner.map(lambda part: Nest(2, part)),
            inner.map(Align),
        )

    return st.recursive(WORDS, larger, max_leaves=12)


@given(documents(), st.integers(4, 40))
def test_words_and_their_order_stay(document: Document, width: int) -> None:
    flat = render(Group(document), 10**6, 0)
    assert len(flat) == 1
    lines = render(document, width, 0)
    assert " ".join(lines).split() == flat[0].split()


@given(documents(), st.integers(4, 40))
def test_what_fits_is_not_broken(document: Document, width: int) -> None:
    (flat,) = render(Group(document), 10**6, 0)
    lines = render(Group(document), width, 0)
    assert (len(lines) == 1) == (len(flat) <= width or " " not in flat)


@given(st.lists(WORDS, min_size=1, max_size=12), st.integers(8, 30))
def test_a_fill_takes_as_many_words_as_a_line_holds(words: list[Text], width: int) -> None:
    lines = render(Fill(tuple(words)), width, 0)
    assert all(len(line) <= width for line in lines)
    for line, following in pairwise(lines):
        assert len(line) + 1 + len(following.split()[0]) > width


def test_a_group_breaks_all_of_its_lines_or_none() -> None:
    inner = Group(Concat((Text("bbbb"), Line(), Text("cccc"))))
    outer = Group(Nest(2, Concat((Text("aaaa"), Line(), inner, Line(), Text("dddd")))))
    assert render(outer, 20, 0) == ["aaaa bbbb cccc dddd"]
    assert render(outer, 12, 0) == ["aaaa", "  bbbb cccc", "  dddd"]
    assert render(outer, 8, 0) == ["aaaa", "  bbbb", "  cccc", "  dddd"]


def test_comments_end_their_lines_and_take_no_width() -> None:
    document = Group(Concat((Text("a"), Comment("# one"), Line(), Comment("# two", alone=True), Text("b"))))
    assert render(document, 100, 4) == ["    a   # one", "    # two", "    b"]
    assert render(Group(Concat((Text("a"), Line(), Text("b")))), 3, 0) == ["a b"]


def test_lines_align_only_where_that_is_near() -> None:
    words = Fill((Text("aaa"), Text("bbb")))
    assert render(Concat((Text("f("), Align(words))), 6, 0) == ["f(aaa", "  bbb"]
    assert render(Concat((Text("f" * 20), Align(words))), 24, 0) == ["f" * 20 + "aaa", "    bbb"]
