"""Constants that a model only describes: computed when somebody asks for them, or before that in the background.

Planning hardly looks at large weights before it packs them. So a thread computes them meanwhile, in the order of
the model, a limited number of bytes ahead of what was asked for: memory that is not taken need not be cleared either.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, MutableMapping
from typing import Generic, Protocol, TypeVar

from smartmem_rules.tensor.primitives import Array
from smartmem_rules.tensor.types import TensorType

K = TypeVar("K", bound=Hashable)
S = TypeVar("S", bound=Hashable)
_MOST_AHEAD = 1 << 30
"""Bytes of arrays that are computed and that nobody has asked for."""


class Description(Protocol):
    """What an array is computed from, which must not fail."""

    def array(self) -> Array:
        """The array."""

    def first(self) -> Array:
        """The first few of its elements, in the order of rows."""


class Later(ABC):
    """An array that follows from others, computed when it is asked for and not before.

    Attributes:
        type: what is known of it until then.
    """

    type: TensorType

    @abstractmethod
    def array(self) -> Array:
        """The array, which is not to be written; raises GraphError where it cannot be computed."""


class Described:
    """An array that is computed once, by who asks first or by a thread in the background."""

    def __init__(self, description: Description, size: int, ahead: Ahead) -> None:
        self.size = size
        self._description: Description | None = description
        self._array: Array | None = None
        self._lock = threading.Lock()
        self._ahead = ahead
        self._taken = False
        self.is_ahead = False
        """Whether a thread in the background has begun with it and nobody has asked for it; the queue's."""

    def prepare(self) -> None:
        """Compute the array for somebody who will ask for it."""
        with self._lock:
            if self._description is not None:
                self._array = self._description.array()
                self._description = None

    def varies(self) -> bool:
        """Whether a few elements tell that not all are equal."""
        description = self._description
        if description is None:
            return False
        first = description.first()
        return bool((first != first[:1]).any())

    def array(self) -> Array:
        """The array; the first to ask makes room for others in the background."""
        self.prepare()
        with self._lock:
            first, self._taken = not self._taken, True
        if first:
            self._ahead.taken(self)
        assert self._array is not None
        return self._array


class Ahead:
    """Computes arrays in the background, in the order in which they are added.

    There is one thread, which leaves the other core to the planner. It ends where nothing is left to do or enough is
    done ahead.
    """

    def __init__(self, most: int = _MOST_AHEAD) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._waiting: deque[Described] = deque()
        self._bytes = 0
        self._is_working = False

    def add(self, description: Description, size: int) -> Described:
        """An array of so many bytes that will be computed."""
        made = Described(description, size, self)
        with self._lock:
            self._waiting.append(made)
        self._start()
        return made

    def taken(self, one: Described) -> None:
        """Somebody has an array now."""
        with self._lock:
            if one.is_ahead:
                one.is_ahead = False
                self._bytes -= one.size
            elif one in self._waiting:
                self._waiting.remove(one)
        self._start()

    def only(self, wanted: Iterable[Described]) -> None:
        """Compute no others."""
        kept = set(wanted)
        with self._lock:
            self._waiting = deque(one for one in self._waiting if one in kept)

    def stop(self) -> None:
        """Compute nothing more that nobody asks for."""
        with self._lock:
            self._most = 0

    def _start(self) -> None:
        with self._lock:
            if self._is_working or not self._has_work():
                return
            self._is_working = True
        threading.Thread(target=self._work, name="weights", daemon=True).start()

    def _has_work(self) -> bool:
        return bool(self._waiting) and self._bytes < self._most

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._has_work():
                    self._is_working = False
                    return
                one = self._waiting.popleft()
                one.is_ahead = True
                self._bytes += one.size
            one.prepare()
            del one


class Tensors(MutableMapping[K, Array], Generic[K]):
    """Arrays by name or number; a described one is computed when it is asked for, and names are known without that."""

    def __init__(self, arrays: Mapping[K, Array | Described] | None = None) -> None:
        self._arrays: dict[K, Array | Described] = dict(arrays or {})

    def __getitem__(self, name: K) -> Array:
        value = self._arrays[name]
        if isinstance(value, Described):
            value = self._arrays[name] = value.array()
        return value

    def __setitem__(self, name: K, array: Array) -> None:
        self._arrays[name] = array

    def __delitem__(self, name: K) -> None:
        del self._arrays[name]

    def __iter__(self) -> Iterator[K]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __repr__(self) -> str:
        return f"Tensors({', '.join(map(str, self._arrays))})"

    def described(self) -> list[Described]:
        """What nobody has asked this table for."""
        return [value for value in self._arrays.values() if isinstance(value, Described)]

    def is_described(self, name: K) -> bool:
        """Whether nobody has asked this table for an array yet."""
        return isinstance(self._arrays.get(name), Described)

    def varies(self, name: K) -> bool:
        """Whether it is known without computing an array that not all of its elements are equal."""
        value = self._arrays[name]
        return isinstance(value, Described) and value.varies()

    def describe(self, name: K, array: Described) -> None:
        """Take in an array that may be computed later."""
        self._arrays[name] = array

    def take_from(self, others: Mapping[S, Array], name: K, source: S) -> None:
        """Take in an array of others, which is not computed for that."""
        self._arrays[name] = others._arrays[source] if isinstance(others, Tensors) else others[source]

    def with_more(self, arrays: Mapping[K, Array]) -> Tensors[K]:
        """The table itself, with more arrays."""
        self._arrays.update(arrays)
        return self


def some(tensors: Mapping[K, Array], names: Iterable[K] | None = None) -> Tensors[K]:
    """A table of its own of some arrays, or of all."""
    made = Tensors[K]()
    for name in tensors if names is None else names:
        made.take_from(tensors, name, name)
    return made
