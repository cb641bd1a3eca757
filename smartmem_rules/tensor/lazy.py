"""Attributes that are computed when they are first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as lazy
else:

    class lazy:
        """`functools.cached_property` without the lock that it takes in Python 3.11.

        Threads that ask at the same time may compute the value twice; it has to be the same each time. Planning makes
        hundreds of thousands of indices, for which the lock is most of the cost.
        """

        def __init__(self, compute: Any) -> None:
            self.compute = compute
            self.name = ""
            self.__doc__ = compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = self.compute(instance)
            object.__setattr__(instance, self.name, value)  # asking for `__dict__` would make one
            return value


__all__ = ["lazy"]
