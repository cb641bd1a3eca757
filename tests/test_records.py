"""Records behave as the classes that `dataclasses` makes, whose methods are compiled at once."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from smartmem_rules.records import dataclass, is_frozen, unguarded


def _forms(decorate: Callable[..., Any]) -> dict[str, Any]:
    """Classes of every kind that there are, made with a decorator."""

    @decorate
    class Plain:
        first: int
        second: list[int] = dataclasses.field(default_factory=list)
        third: str = "text"

    @decorate(frozen=True)
    class Frozen:
        """With a description."""

        first: int
        hidden: int = dataclasses.field(default=3, repr=False, compare=False)
        made: int = dataclasses.field(init=False, default=7)

    @decorate(frozen=True)
    class Derived(Frozen):
        more: tuple[int, ...] = ()

        def __hash__(self) -> int:
            return 5

    @decorate(frozen=True, slots=True)
    class Slots:
        first: int
        second: int = 2

    @decorate(frozen=True, kw_only=True)
    class Keywords:
        first: int
        second: int = 2

        def __post_init__(self) -> None:
            if self.first < 0:
                raise ValueError("negative")

    @decorate(eq=False)
    class Same:
        first: int

        def __repr__(self) -> str:
            return "own"

    @decorate(frozen=True)
    class Ordered:
        first: int
        later: int = dataclasses.field(kw_only=True)
        last: int = 1

        def __eq__(self, other: object) -> bool:
            return True

    return {one.__name__: one for one in (Plain, Frozen, Derived, Slots, Keywords, Same, Ordered)}


OURS, THEIRS = _forms(dataclass), _forms(dataclasses.dataclass)
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Plain", (1,), {}), ("Plain", (1, [2]), {"third": "x"}), ("Plain", (), {}), ("Plain", (1,), {"fourth": 1}),
    ("Frozen", (1,), {}), ("Frozen", (1, 2), {}), ("Frozen", (1, 2, 3), {}), ("Frozen", (1,), {"made": 2}),
    ("Derived", (1,), {"more": (2, 3)}), ("Derived", (1, 2, (3,)), {}), ("Slots", (1,), {}), ("Slots", (1, 5), {}),
    ("Keywords", (), {"first": 1}), ("Keywords", (1,), {}), ("Keywords", (), {"first": -1}), ("Same", (1,), {}),
    ("Ordered", (1,), {"later": 2}), ("Ordered", (1, 2), {"later": 3}), ("Ordered", (1, 2, 3), {}),
]  # fmt: skip


def _tried(act: Callable[[], Any]) -> object:
    try:
        return act()
    except Exception as error:
        return type(error), str(error)


def _seen(kind: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> list[object]:
    """What can be seen of an instance."""
    made = _tried(lambda: kind(*arguments, **keywords))
    if not isinstance(made, kind):
        return [made]
    again = kind(*arguments, **keywords)
    first = dataclasses.fields(made)[0].name
    return [
        repr(made), made == again, made == 3, made != again, made == dataclasses.replace(made, first=99),
        dataclasses.asdict(made), dataclasses.is_dataclass(made), kind.__match_args__,
        _tried(lambda: hash(made) == hash(again)), kind.__hash__ is None,
        _tried(lambda: setattr(made, first, 1)), _tried(lambda: setattr(made, "other", 1)) is None,
        _tried(lambda: delattr(made, first)), _tried(lambda: repr(copy.copy(again))),
        _tried(lambda: dataclasses.asdict(copy.deepcopy(again))),
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "keywords"), CALLS)
def test_records_are_as_dataclasses_makes_them(name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Also at the second call, when the methods are compiled."""
    expected = _seen(THEIRS[name], arguments, keywords)
    assert _seen(OURS[name], arguments, keywords) == expected
    assert _seen(OURS[name], arguments, keywords) == expected


def test_methods_that_a_class_inherits_are_compiled_for_the_class_that_has_them() -> None:
    @dataclass(frozen=True)
    class Base:
        first: int

    class Below(Base):
        pass

    assert Below(1) == Below(1)
    assert Below(1) != Base(1)
    assert repr(Below(1)).endswith("Below(first=1)")
    assert "__init__" not in vars(Below)


@dataclass(frozen=True, slots=True)
class Kept:
    """Can be pickled: it stands in a module."""

    first: int
    second: str = "b"


@unguarded(frozen=True, slots=True)
class Open:
    """As `Kept`, without a guard."""

    first: int
    second: str = "b"


@pytest.mark.parametrize("kind", [Kept, Open])
def test_records_with_slots_can_be_pickled(kind: Any) -> None:
    assert pickle.loads(pickle.dumps(kind(1, "c"))) == kind(1, "c")
    assert hash(kind(1)) == hash(kind(1))
    assert is_frozen(kind)


def test_frozen_is_what_a_class_says_itself() -> None:
    assert [is_frozen(OURS[name]) for name in ("Plain", "Frozen", "Same", "Keywords")] == [False, True, False, True]
    assert not is_frozen(int)
