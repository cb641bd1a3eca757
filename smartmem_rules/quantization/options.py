"""How the weights of a model are quantized, checked before anything is read."""

from __future__ import annotations

from collections.abc import Collection

from smartmem_rules.errors import SmartmemError
from smartmem_rules.language.fixes import did_you_mean
from smartmem_rules.records import dataclass

OPERATOR, PAIRS = "matmulnbits", "qdq"
"""The forms: ONNX Runtime's operators (`MatMulNBits`), and `DequantizeLinear` in front of the product."""
LEAST_BLOCK = 16
"""Of ONNX Runtime's operator, which takes powers of two from here on."""
LEAST = 4096


class QuantizeError(SmartmemError):
    """A model cannot be quantized as it was asked for; the message says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class Code:
    """Integers that weights become.

    Attributes:
        symmetric: whether their zero point is 0 (of unsigned ones the middle).
    """

    name: str
    bits: int
    symmetric: bool

    @property
    def low(self) -> int:
        """The least of them, where the zero point is 0."""
        return -(1 << (self.bits - 1)) if self.symmetric else 0

    @property
    def high(self) -> int:
        return self.low + (1 << self.bits) - 1


CODES = {
    code.name: code
    for code in (
        Code(name="int4", bits=4, symmetric=True),
        Code(name="uint4", bits=4, symmetric=False),
        Code(name="int8", bits=8, symmetric=True),
        Code(name="uint8", bits=8, symmetric=False),
    )
}
"""By their names: signed ones are symmetric, unsigned ones have a zero point for each block."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How weights are quantized.

    Attributes:
        weights: `int4`, `uint4`, `int8` or `uint8`.
        block: neighbouring weights of a column that share a scale; 0 for one scale for each column.
        form: `matmulnbits` or `qdq`.
        exclude: names of nodes that stay as they are.
        least: weights below which a product stays as it is.
        tables: whether tables of rows (embeddings) are quantized as well; only as operators of ONNX Runtime.
    """

    weights: str = "int4"
    block: int = 32
    form: str = OPERATOR
    exclude: Collection[str] = ()
    least: int = LEAST
    tables: bool = True

    @property
    def code(self) -> Code:
        return CODES[self.weights]

    def check(self) -> None:
        """Raises QuantizeError for what no model can be quantized to."""
        if self.weights not in CODES:
            near = did_you_mean(self.weights, CODES)
            raise QuantizeError(f"there are no weights {self.weights!r}; {near or 'they are ' + ', '.join(CODES)}")
        if self.form not in (OPERATOR, PAIRS):
            raise QuantizeError(f"there is no form {self.form!r}; it is {OPERATOR} or {PAIRS}")
        if self.block < 0:
            raise QuantizeError(f"a block of {self.block} weights: give a positive number, or 0 for whole columns")
        if self.form == OPERATOR and (self.block < LEAST_BLOCK or self.block & (self.block - 1)):
            raise QuantizeError(
                f"a block of {self.block} weights: MatMulNBits takes powers of two from {LEAST_BLOCK} on; give one of "
                f"them (32, 64, 128), or the form {PAIRS}, which takes any block and 0 for whole columns"
            )
