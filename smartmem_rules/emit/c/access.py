"""How kernels read and write stored tensors: buffers with vector pointers, images with four lanes a texel."""

from __future__ import annotations

from collections.abc import Callable, Collection

from smartmem_rules.plan.kernel.addressing import (
    INTEGER_VECTORS,
    VECTORS,
    consecutive,
    offset,
    side_by_side,
    texel,
    texel_base,
)
from smartmem_rules.plan.kernel.model import Stored
from smartmem_rules.records import dataclass
from smartmem_rules.tensor.atoms import Var
from smartmem_rules.tensor.index import Index

C_TYPES = {
    "float32": "float", "float16": "half", "float64": "double",
    "int8": "char", "int16": "short", "int32": "int", "int64": "long",
    "uint8": "uchar", "uint16": "ushort", "uint32": "uint", "uint64": "ulong", "bool": "uchar", "bfloat16": "ushort",
}  # fmt: skip
"""The type of one element in memory."""

HALVES = 4
"""Halves that are loaded together where a condition holds."""

CONVERTED = {"float16": "half", "bfloat16": "bfloat"}
"""What the functions are called that widen and round floats of 16 bits (OpenCL's own, and those of the prelude)."""

Text = Callable[[Index], str]
"""Renders an index as C."""


@dataclass(frozen=True)
class Access:
    """Reads and writes of one kernel parameter.

    Attributes:
        kinds: the types of elements that are read and written several at a time.
    """

    parameter: str
    stored: Stored
    rounding: str = ""
    kinds: Collection[str] = VECTORS

    @property
    def is_image(self) -> bool:
        return self.stored.layout.memory == "image"

    @property
    def converted(self) -> str:
        """What the functions are called that convert its elements; "" where they are computed as they lie there."""
        return CONVERTED.get(self.stored.storage, "")

    @property
    def space(self) -> str:
        """The address space of a pointer to its elements: scratch memory has none of its own."""
        return "" if self.stored.layout.memory == "scratch" else "__global "

    def declaration(self, access: str, alone: bool = True) -> str:
        """The kernel's parameter; `alone`: nothing else of the kernel lies in the tensor's memory."""
        where = f"/* {self.stored.layout} of [{', '.join(map(str, self.stored.type.shape))}] */"
        if self.is_image:
            return f"{access}_only image2d_t {self.parameter} {where}"
        constant = "const " if access == "read" else ""
        pointer = "* restrict" if alone else "*"
        return f"{self.space}{constant}{C_TYPES[self.stored.storage]}{pointer} {self.parameter} {where}"

    # --- reads ---

    def read(self, indices: tuple[Index, ...], text: Text) -> str:
        """One element as a scalar of the compute type."""
        if self.is_image:
            x, y, lane = texel(self.stored, indices)
            pixel = f"read_imagef({self.parameter}, smr_sampler, (int2)({text(x)}, {text(y)}))"
            if lane.is_constant and not lane.is_open:
                return f"{pixel}.s{lane.constant}"
            return f"smr_lane({pixel}, {text(lane)})"
        position = text(offset(self.stored, indices))
        if self.converted:
            return f"vload_{self.converted}({position}, {self.parameter})"
        return f"{self.parameter}[{position}]"

    def contiguous(self, indices: tuple[Index, ...], lane: Var) -> bool:
        """Whether the elements over the lane variable lie side by side (in one texel of an image)."""
        return side_by_side(self.stored, indices, lane, self.kinds)

    def read_vector(self, indices: tuple[Index, ...], lane: Var, text: Text) -> str:
        """The elements over the lane variable; only where `contiguous`."""
        if self.is_image:
            base = texel_base(self.stored, indices, lane)
            assert base is not None
            return f"read_imagef({self.parameter}, smr_sampler, (int2)({text(base[0])}, {text(base[1])}))"
        start = consecutive(offset(self.stored, indices), lane)
        assert start is not None
        if self.converted:
            function = f"{_unaligned(start, lane.extent)}vload_{self.converted}{lane.extent}"
            return f"{function}(0, {self.parameter} + {text(start)})"
        if self.stored.storage in INTEGER_VECTORS:
            loaded = f"*({self.space}const {self._integers(lane.extent)}*)({self.parameter} + {text(start)})"
            return loaded if self.stored.storage == "int32" else f"convert_int{lane.extent}({loaded})"
        return f"*({self.space}const {_vector(start, lane.extent)}*)({self.parameter} + {text(start)})"

    def place_of_halves(self, indices: tuple[Index, ...], lane: Var, text: Text) -> str | None:
        """The address of four neighbouring halves, aligned as a vector of them; None where there are none such."""
        if self.is_image or not self.converted or lane.extent != HALVES:
            return None
        start = consecutive(offset(self.stored, indices), lane)
        return f"{self.parameter} + {text(start)}" if start is not None and start.is_multiple_of(HALVES) else None

    # --- writes ---

    def write(self, indices: tuple[Index, ...], value: str, text: Text) -> str:
        """A statement that stores one element in a buffer."""
        position = text(offset(self.stored, indices))
        if self.converted:
            return f"vstore_{self.converted}_rte({value}, {position}, {self.parameter});"
        return f"{self.parameter}[{position}] = {value};"

    def write_vector(self, indices: tuple[Index, ...], lane: Var, value: str, text: Text) -> str:
        """A statement that stores the elements over the lane variable; only where `contiguous`."""
        if self.is_image:
            base = texel_base(self.stored, indices, lane)
            assert base is not None
            return f"write_imagef({self.parameter}, (int2)({text(base[0])}, {text(base[1])}), {value});"
        start = consecutive(offset(self.stored, indices), lane)
        assert start is not None
        if self.converted:
            function = f"{_unaligned(start, lane.extent)}vstore_{self.converted}{lane.extent}_rte"
            return f"{function}({value}, 0, {self.parameter} + {text(start)});"
        if self.stored.storage in INTEGER_VECTORS:
            kind = C_TYPES[self.stored.storage]
            narrow = value if kind == "int" else f"convert_{kind}{lane.extent}({value})"
            return f"*({self.space}{self._integers(lane.extent)}*)({self.parameter} + {text(start)}) = {narrow};"
        return f"*({self.space}{_vector(start, lane.extent)}*)({self.parameter} + {text(start)}) = {value};"

    def _integers(self, width: int) -> str:
        """The type of a vector of integers in memory, which is aligned for one of them only."""
        return f"smr_{C_TYPES[self.stored.storage]}{width}"

    def write_texel(self, indices: tuple[Index, ...], value: str, text: Text) -> str:
        """A statement that stores a whole texel, given the indices of its first element."""
        x, y, _ = texel(self.stored, indices)
        return f"write_imagef({self.parameter}, (int2)({text(x)}, {text(y)}), {value});"


def _vector(start: Index, width: int) -> str:
    """The type of a vector in memory: with its natural alignment where its place shows that it has it."""
    return f"float{width}" if start.is_multiple_of(width) else f"smr_float{width}"


def _unaligned(start: Index, width: int) -> str:
    """Prefix of the prelude's functions for halves that need not be aligned as a vector is.

    Every tensor begins at a multiple of its vectors' width (`storage.ALIGNMENT`).
    """
    return "" if start.is_multiple_of(width) else "smr_"
