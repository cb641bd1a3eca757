"""The words that the rule language gives a meaning: builtin functions, dtypes, kinds and classes."""

from __future__ import annotations

from smartmem_rules.records import dataclass

BLOCK_WORDS = ("device", "matrix", "schedule", "level", "strategy", "layout", "fuse", "export")
ITEM_WORDS = (
    *("import", "ruleset", "for", "family", "function", "predicate", "analysis", "let"),
    *("operator", "rewrite", "eliminate", "index", "derive", "keep", "table"),
)
"""The words that begin an item, besides those of blocks."""
RULE_CLAUSES = ("let", "where", "relaxes", "explores", "defers", "tags", "cites", "unsound")
"""The words that begin a clause of a rule."""
OPERATOR_CLAUSES = (
    *("onnx", "internal", "commutative", "override", "require"),
    *("let", "class", "mapping", "reference", "cost", "view", "scan"),
)
"""The words that begin a clause of an operator."""


@dataclass(frozen=True, slots=True)
class Arity:
    """How many arguments a function takes; `most` is None when there is no upper bound."""

    least: int
    most: int | None

    def admits(self, count: int) -> bool:
        """Whether `count` arguments are neither too few nor too many."""
        return self.least <= count and (self.most is None or count <= self.most)

    def __str__(self) -> str:
        if self.most is None:
            return f"{self.least} or more arguments"
        if self.least != self.most:
            return f"{self.least} to {self.most} arguments"
        return f"{self.least} argument{'' if self.least == 1 else 's'}"


def _exactly(count: int, names: str) -> dict[str, Arity]:
    return dict.fromkeys(names.split(), Arity(count, count))


LIST_FUNCTIONS: dict[str, Arity] = {
    **_exactly(1, "rank prod sum_of ones zeros reverse sort cumsum shape dtype count present fail"),
    **_exactly(1, "abs sign floor ceil round sqrt single int letters distinct"),
    **_exactly(2, "full take drop permute unpermute wrap contains index_of ceil_div extent ravel unravel near parts"),
    "range": Arity(1, 3),
    **_exactly(3, "put insert clamp"),
    **dict.fromkeys(("concat", "broadcast", "min", "max"), Arity(1, None)),
}
ELEMENT_FUNCTIONS: dict[str, Arity] = {
    **_exactly(1, "exp expm1 log log1p sqrt rsqrt recip abs neg sign floor ceil round sin cos tan asin acos atan"),
    **_exactly(1, "sinh cosh tanh asinh acosh atanh erf sigmoid isnan isinf float"),
    **_exactly(2, "pow mod fmod cast bitcast bit_and bit_or bit_xor shift_left shift_right"),
    **_exactly(3, "select fma"),
}
GUARD_FUNCTIONS: dict[str, Arity] = _exactly(1, "constant value uses")
DEFINITION_FUNCTIONS = LIST_FUNCTIONS | ELEMENT_FUNCTIONS
ALL_FUNCTIONS = DEFINITION_FUNCTIONS | GUARD_FUNCTIONS
GIVING_LISTS = frozenset(
    {"shape", "range", "ones", "zeros", "full", "reverse", "sort", "cumsum", "take", "drop", "permute", "unpermute"}
    | {"put", "insert", "concat", "broadcast"}
)
"""Functions whose result is a list whatever they are given."""

VALUE_WORDS = frozenset({"none", "nan"})
"""Names that stand for themselves everywhere; `inf` and truth values are part of the grammar."""

DTYPE_CLASSES = frozenset({"float", "int", "number", "bool", "any", "narrow"})
DTYPES = frozenset(
    {
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "int4",
        "uint4",
        "int2",
        "uint2",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float4_e2m1fn",
        "string",
    }
)
DTYPE_WORDS = DTYPE_CLASSES | DTYPES
# `T` needs no declaration: it is any number.
IMPLICIT_DTYPE_VARIABLE = "T"

ATTRIBUTE_KINDS = frozenset({"int", "float", "string", "ints", "floats", "strings", "bool", "tensor"})
CONSTANT_KINDS = frozenset({"int", "ints", "float", "floats", "tensor"})

CLASSES = frozenset({"ILD.Variable", "ILI.Variable", "ILD.Fixed", "ILI.Fixed"})
MAPPINGS = frozenset({"one_to_one", "one_to_many", "many_to_many", "reorganize", "shuffle"})
COST_QUANTITIES = ("operations", "bytes", "launches")
"""What a `cost` clause of an operator may say."""
RELAXATIONS = frozenset({"reassociation", "nan", "infinities", "signed_zero"})
