"""Questions to a kernel whose answers are known: what its arguments hold, and what must lie in memory afterwards.

All contents are in the order of memory, so that whoever asks needs to know nothing of layouts or equations.
"""

from __future__ import annotations

import numpy as np

from smartmem_rules.records import dataclass

GIVEN = "given"
SIGNS = "signs"
OWN = "own"
UNSET = "unset"
UNSET_BYTE = 0xFF
"""What each byte of unset memory is: no number, in all floats."""
_ROOM = {2: (np.uint16, 9), 4: (np.uint32, 22), 8: (np.uint64, 51)}


@dataclass(frozen=True, kw_only=True)
class Rows:
    """An array as its different rows: the contents of probes repeat, and take little room so.

    Attributes:
        different: the rows that differ, each once: [count, width].
        numbers: for each row of the array which one it is, int32.
        shape: of the array.
    """

    different: np.ndarray
    numbers: np.ndarray
    shape: tuple[int, ...]

    @staticmethod
    def of(array: np.ndarray, width: int) -> Rows:
        """An array cut into rows of a width, of which its size is a multiple."""
        flat = np.ascontiguousarray(array).reshape(-1, width)
        keys = flat.view(np.dtype((np.void, width * flat.dtype.itemsize))).reshape(-1)
        _, first, numbers = np.unique(keys, return_index=True, return_inverse=True)
        return Rows(different=flat[first], numbers=numbers.reshape(-1).astype(np.int32), shape=array.shape)

    def array(self) -> np.ndarray:
        """The array."""
        return np.take(self.different, self.numbers, axis=0).reshape(self.shape)


@dataclass(frozen=True, kw_only=True)
class Filling:
    """What an argument of a kernel holds before it runs.

    Attributes:
        kind: `given`: the rows; `signs`: small numbers with the signs of the constant (`signs`); `own`: the constant
            itself; `unset`: bytes of ones, which are no numbers, where a kernel writes.
        exponent: of `signs`.
    """

    kind: str
    rows: Rows | None = None
    exponent: int = 0


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What an argument must hold afterwards.

    Attributes:
        argument: its number.
        bound: how far an element may be from what is expected; 0 where the arithmetic is exact.
    """

    argument: int
    rows: Rows
    bound: float


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One question to the kernel of some launches that are alike.

    Attributes:
        launches: their numbers in the plan; what is asked of the first one holds for all.
        fillings: for each argument.
        extents: of the open dimensions, by name.
    """

    launches: tuple[int, ...]
    fillings: tuple[Filling, ...]
    answers: tuple[Answer, ...]
    extents: tuple[tuple[str, int], ...] = ()


def signs(values: np.ndarray, exponent: int) -> np.ndarray:
    """One or two times 2**exponent for each float, with its sign; zero stays zero, integers stay what they are.

    It looks at single elements in the precision in which they are stored, so that constants can be replaced where
    they lie, in whatever order they were packed.
    """
    if values.dtype.kind != "f" or values.dtype.itemsize not in _ROOM:
        return values
    bits, mantissa = _ROOM[values.dtype.itemsize]
    upper = (np.ascontiguousarray(values).view(bits) >> bits(mantissa)) & bits(1)
    sizes = np.where(values == 0, 0, np.ldexp(1.0 + upper.reshape(values.shape), exponent))
    made: np.ndarray = np.copysign(sizes, values).astype(values.dtype)
    return made
