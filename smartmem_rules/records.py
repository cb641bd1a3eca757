"""Records: the classes that `dataclasses` makes, with methods that are compiled when they are first called.

`dataclasses` compiles up to six methods for each class while its module loads. Planning loads more than four hundred
such classes, and most of these methods are never called: compiling them took 0.25 s of each process.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass", "is_frozen", "unguarded"]

_DEFAULT = object()
"""Stands for an argument that is not given and that a function makes."""
_set = object.__setattr__


if TYPE_CHECKING:
    from dataclasses import dataclass, dataclass as unguarded
else:

    def dataclass(kind: type | None = None, /, **options: bool) -> Any:
        """`dataclasses.dataclass`; the options are `eq`, `frozen`, `kw_only` and `slots`."""
        return partial(_record, **options) if kind is None else _record(kind)

    def unguarded(*, frozen: bool, **options: bool) -> Any:
        """`dataclass(frozen=True)` where only type checkers refuse assignments.

        For what planning makes by the hundred thousand: a guard makes each of them three times as slow to make.
        """
        assert frozen
        return partial(_record, frozen=True, guarded=False, **options)


def is_frozen(kind: type) -> bool:
    """Whether fields of a record's instances stay what they are."""
    return bool(getattr(kind, "__frozen_record__", False))


def _record(
    kind: type,
    eq: bool = True,
    frozen: bool = False,
    kw_only: bool = False,
    slots: bool = False,
    guarded: bool = True,
) -> type:
    kind.__doc__ = kind.__doc__ or kind.__name__  # else `dataclasses` writes a signature there
    has_hash = vars(kind).get("__hash__") is not None
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only, slots=slots)(kind)
    made.__frozen_record__ = frozen
    own = vars(made)
    if "__init__" not in own:
        _compiled_later(made, "__init__", lambda: _init(made, frozen and guarded))
    if "__repr__" not in own:
        made.__repr__ = _repr
    if eq:
        if "__eq__" not in own:
            _compiled_later(made, "__eq__", lambda: _eq(made))
        if not has_hash:
            made.__hash__ = None
            if frozen:
                _compiled_later(made, "__hash__", lambda: _hash(made))
    if frozen and guarded:
        _guard(made)
        if slots:
            made.__getstate__ = _state
            _compiled_later(made, "__setstate__", lambda: _set_state(made))
    return made  # type: ignore[no-any-return]


def _compiled_later(kind: type, name: str, make: Callable[[], Callable[..., Any]]) -> None:
    def first(self: Any, *arguments: Any, **keywords: Any) -> Any:
        method = make()
        setattr(kind, name, method)
        return method(self, *arguments, **keywords)

    first.__name__, first.__qualname__ = name, f"{kind.__qualname__}.{name}"
    setattr(kind, name, first)


def _compiled(kind: type, name: str, parameters: str, body: list[str], names: dict[str, Any]) -> Callable[..., Any]:
    text = f"def {name}({parameters}):\n " + "\n ".join(body or ["pass"])
    exec(compile(text, f"<{kind.__module__}.{kind.__qualname__}>", "exec"), names)
    method: Callable[..., Any] = names[name]
    method.__qualname__ = f"{kind.__qualname__}.{name}"
    return method


def _init(kind: Any, guarded: bool) -> Callable[..., Any]:
    names: dict[str, Any] = {"_set": _set, "_DEFAULT": _DEFAULT}
    plain, keyword, body = ["self"], list[str](), list[str]()
    for one in dataclasses.fields(kind):
        parameter = value = one.name
        if one.default_factory is not dataclasses.MISSING:
            names[f"_make_{one.name}"] = one.default_factory
            parameter += "=_DEFAULT"
            value = f"_make_{one.name}()"
            if one.init:
                value += f" if {one.name} is _DEFAULT else {one.name}"
        elif one.default is not dataclasses.MISSING:
            names[f"_default_{one.name}"] = one.default
            parameter += f"=_default_{one.name}"
            if not one.init:
                value = f"_default_{one.name}"
        elif not one.init:  # which `__post_init__` sets
            continue
        if one.init:
            (keyword if one.kw_only else plain).append(parameter)
        body.append(f"_set(self, {one.name!r}, {value})" if guarded else f"self.{one.name} = {value}")
    if hasattr(kind, "__post_init__"):
        body.append("self.__post_init__()")
    return _compiled(kind, "__init__", ", ".join([*plain, "*", *keyword] if keyword else plain), body, names)


def _eq(kind: Any) -> Callable[..., Any]:
    compared = [one.name for one in dataclasses.fields(kind) if one.compare]
    ours, others = ("".join(f"{who}.{name}, " for name in compared) for who in ("self", "other"))
    body = [
        "if self is other: return True",
        f"return ({ours}) == ({others}) if other.__class__ is self.__class__ else NotImplemented",
    ]
    return _compiled(kind, "__eq__", "self, other", body, {})


def _hash(kind: Any) -> Callable[..., Any]:
    hashed = [one.name for one in dataclasses.fields(kind) if (one.compare if one.hash is None else one.hash)]
    return _compiled(kind, "__hash__", "self", [f"return hash(({''.join(f'self.{name}, ' for name in hashed)}))"], {})


@recursive_repr()
def _repr(self: Any) -> str:
    shown = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in dataclasses.fields(self) if one.repr)
    return f"{type(self).__qualname__}({shown})"


def _guard(kind: Any) -> None:
    names = frozenset(one.name for one in dataclasses.fields(kind))

    def assign(self: Any, name: str, value: Any) -> None:
        if type(self) is kind or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(kind, self).__setattr__(name, value)

    def delete(self: Any, name: str) -> None:
        if type(self) is kind or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(kind, self).__delattr__(name)

    kind.__setattr__, kind.__delattr__ = assign, delete


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in dataclasses.fields(self)]


def _set_state(kind: Any) -> Callable[..., Any]:
    names = [one.name for one in dataclasses.fields(kind)]
    body = ["".join(f"{name}, " for name in names) + "= state"] if names else []
    body += [f"_set(self, {name!r}, {name})" for name in names]
    return _compiled(kind, "__setstate__", "self, state", body, {"_set": _set})
