"""`matrix` blocks: what a matrix unit multiplies, how its operands lie in the registers of a sub-group, and its texts.

A fragment is the part of a matrix that a sub-group holds, some elements in each lane. How it lies there is written
as a mixed-radix number: each clause takes the next digit of the lane's (or of the element's) number, from the lowest
on, and says how far one of it moves down the rows and along the columns.

left_lanes 4 0 2;       # the lane modulo 4 moves by two columns,
left_lanes 8 1 0;       # the lane divided by 4 by a row
left_elements 2 0 1;    # the two halves of a register are neighbours in a row
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import MISSING, replace
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

from smartmem_rules.language.blocks.keys import (
    BlockRecord,
    clauses_of_wholes,
    text,
    texts as all_texts,
    whole,
    wholes,
    word,
)
from smartmem_rules.language.blocks.ranges import FROM_ONE, ITEMS
from smartmem_rules.records import dataclass

ELEMENTS = ("float32", "float16", "bfloat16", "int8")
SUMS = ("float32", "int32")
OPERANDS = ("registers", "local")
ROW_BYTES = 128
"""Of a row of a tile from which products read."""
HALF_BYTES = 2
ELEMENT_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "int8": 1}


class Digit(NamedTuple):
    """One digit of a lane's or an element's number: how many values it has, and where one more of it leads."""

    extent: int
    rows: int
    columns: int


@dataclass(frozen=True)
class Fragment:
    """How a matrix of `rows` x `columns` lies in the registers of a sub-group."""

    rows: int
    columns: int
    lanes: tuple[Digit, ...]
    elements: tuple[Digit, ...]

    @property
    def lane_count(self) -> int:
        return math.prod(digit.extent for digit in self.lanes)

    @property
    def element_count(self) -> int:
        """Elements that each lane holds."""
        return math.prod(digit.extent for digit in self.elements)

    def place(self, lane: int, element: int) -> tuple[int, int]:
        """Row and column of an element of a lane."""
        row = column = 0
        for number, digits in ((lane, self.lanes), (element, self.elements)):
            for extent, rows, columns in digits:
                number, digit = divmod(number, extent)
                row, column = row + digit * rows, column + digit * columns
        return row, column

    def fault(self, lanes: int) -> str:
        """What is wrong with the layout, empty where each element of the matrix lies in one place of one lane.

        Args:
            lanes: of the sub-group.
        """
        if self.lane_count != lanes:
            return f"its lanes are {self.lane_count}, the sub-group has {lanes}"
        held = self.lane_count * self.element_count
        if held != self.rows * self.columns:
            return (
                f"it holds {held} elements, the matrix of {self.rows} x {self.columns} has {self.rows * self.columns}"
            )
        held_in = Counter(self.place(lane, element) for lane in range(lanes) for element in range(self.element_count))
        outside = next((p for p in sorted(held_in) if not (0 <= p[0] < self.rows and 0 <= p[1] < self.columns)), None)
        if outside is not None:
            return f"row {outside[0]}, column {outside[1]} lies outside of the matrix of {self.rows} x {self.columns}"
        if len(held_in) == held:
            return ""
        twice = min(place for place, times in held_in.items() if times > 1)
        never = min(place for place in product(range(self.rows), range(self.columns)) if place not in held_in)
        return (
            f"two places hold the same element, row {twice[0]}, column {twice[1]}, and none holds row {never[0]}, "
            f"column {never[1]}"
        )


def _chained(left: Fragment, sums: Fragment, lane: int) -> tuple[tuple[int, int], ...]:
    """For each element of a lane's left fragment, the fragment of sums and the element in it; empty if one lacks."""
    own = {sums.place(lane, element): element for element in range(sums.element_count)}
    places = [left.place(lane, element) for element in range(left.element_count)]
    if any((row, k % sums.columns) not in own for row, k in places):
        return ()
    return tuple((k // sums.columns, own[row, k % sums.columns]) for row, k in places)


def _digits(meaning: str, default: Any = MISSING) -> tuple[Digit, ...]:
    return clauses_of_wholes(meaning, Digit, default)  # type: ignore[no-any-return]


@dataclass(frozen=True, kw_only=True)
class Matrix(BlockRecord):
    """A `matrix` block."""

    factors: str = word("the type of both factors' elements", *ELEMENTS)
    sums: str = word("the type in which products are summed", *SUMS)
    shape: tuple[int, ...] = wholes(
        "rows and columns of the sums, and depth, of one product", least=3, most=3, within=(FROM_ONE,)
    )
    lanes: int = whole("work-items of a sub-group, which multiply together", within=ITEMS)
    capability: tuple[int, ...] = wholes("NVIDIA's compute capability from which on there is one", (0, 0), 2, 2)
    until: tuple[int, ...] = wholes("compute capability from which on there is none any more; 0 0: none", (0, 0), 2, 2)
    extension: str = text("the OpenCL extension without which there is none", "")
    texts: str = word(
        "the file of codegen/ (without `.cl`) whose functions load, multiply and store fragments, and copy to local "
        "memory"
    )
    multiply: str = text("the instruction or built-in function that multiplies, as the file of `texts` takes it")
    target: str = text(
        "the PTX target that has the instructions, where the driver compiles OpenCL C for another one, but takes PTX "
        "for this one",
        "",
    )
    operands: str = word(
        "where products read their factors: in fragments of registers, or in tiles of local memory whose rows are 128 "
        "bytes, pieces of 16 bytes exchanged as the texts say",
        *OPERANDS,
        default="registers",
    )
    widths: tuple[int, ...] = wholes(
        "columns that one product may have, with operands in local memory", (), within=(FROM_ONE,)
    )
    passes: int = whole("products of parts of the factors that make one product", 1, within=FROM_ONE)
    longest_sum: int = whole(
        "products that one sum takes before it is added to a sum in float32; 0: as many as without a unit", 0
    )
    registers: int = whole(
        "registers of 32 bits that a work-item takes so that loads overlap with products; 0: any number", 0
    )
    option: tuple[str, ...] = all_texts("an option of the OpenCL compiler for kernels that multiply on the unit")
    asynchronous: int = whole("bytes that a work-item copies to local memory while it goes on; 0: none", 0)
    padding: int = whole(
        "bytes behind each row of a tile of elements narrower than a float: rows of a fragment then lie in different "
        "banks of local memory",
        16,
    )
    exchange: int = whole("bytes of local memory through which a sub-group's lanes exchange fragments", 0)
    left_lanes: tuple[Digit, ...] = _digits(
        "left factor, a digit of the lane: values, rows and columns that one moves; none with operands in local memory",
        (),
    )
    left_elements: tuple[Digit, ...] = _digits("left factor, a digit of the element in a lane: the same", ())
    right_lanes: tuple[Digit, ...] = _digits("right factor (depth x columns), a digit of the lane: the same", ())
    right_elements: tuple[Digit, ...] = _digits("right factor, a digit of the element in a lane: the same", ())
    sum_lanes: tuple[Digit, ...] = _digits("sums, a digit of the lane: the same")
    sum_elements: tuple[Digit, ...] = _digits("sums, a digit of the element in a lane: the same")

    @property
    def rows(self) -> int:
        return self.shape[0]

    @property
    def columns(self) -> int:
        return self.shape[1]

    @property
    def depth(self) -> int:
        return self.shape[2]

    @property
    def element_bytes(self) -> int:
        """Of an element of the factors."""
        return ELEMENT_BYTES[self.factors]

    @property
    def chunk(self) -> int:
        """Elements that are copied to local memory at once; 0 where nothing is copied asynchronously."""
        return self.asynchronous // self.element_bytes

    @property
    def fragments(self) -> dict[str, Fragment]:
        """The fragments by the word before their clauses: of the sums alone with operands in local memory."""
        m, n, k = self.shape
        found = {"sum": Fragment(m, n, self.sum_lanes, self.sum_elements)}
        if not self.in_local_memory:
            found["left"] = Fragment(m, k, self.left_lanes, self.left_elements)
            found["right"] = Fragment(k, n, self.right_lanes, self.right_elements)
        return found

    @cached_property
    def chained(self) -> tuple[tuple[int, int], ...]:
        """For each element of a left fragment, where the same lane holds its place of sums: the fragment, the element.

        With them sums become the left factor of another product without leaving their registers. Empty where other
        lanes hold some, or where elements are not halves.
        """
        if self.in_local_memory or self.element_bytes != HALF_BYTES or self.depth % self.columns:
            return ()
        left, sums = self.fragments["left"], self.fragments["sum"]
        found = [_chained(left, sums, lane) for lane in range(self.lanes)]
        return found[0] if all(one == found[0] for one in found) else ()

    @cached_property
    def row_lanes(self) -> int:
        """Neighbouring lanes that hold elements of the same rows of sums; 0 where such lanes are no neighbours."""
        rows = [self.fragments["sum"].place(lane, 0)[0] for lane in range(self.lanes)]
        count = rows.count(rows[0])
        return count if all(row == rows[lane // count * count] for lane, row in enumerate(rows)) else 0

    @property
    def in_local_memory(self) -> bool:
        """Whether products read both factors from tiles in local memory."""
        return self.operands == "local"

    @property
    def row(self) -> int:
        """Elements of a row of such a tile."""
        return ROW_BYTES // self.element_bytes

    def emulated(self) -> Matrix:
        """The unit in plain OpenCL C, for devices that have none: as exact, and slow."""
        # PoCL 3.0 drops sums where it optimizes barriers of inner loops, as in launches that join kernels
        option = ("-cl-opt-disable",)
        if self.in_local_memory:
            return replace(self, texts="matrix_tiles", target="", option=option)
        m, n, k = self.shape
        exchange = (m * k + k * n) * self.element_bytes
        # parts of floats are faster where the floats have passed through registers
        copied = 16 if self.passes == 1 else self.asynchronous
        return replace(self, texts="matrix_subgroup", exchange=exchange, asynchronous=copied, option=option)

    def there(self, capability: tuple[int, int], extensions: tuple[str, ...]) -> bool:
        """Whether a device has the unit."""
        late = any(self.until) and capability >= tuple(self.until)
        known = not self.extension or self.extension in extensions
        return capability >= tuple(self.capability) and known and not late
