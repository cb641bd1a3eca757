"""What functions of other languages and libraries are called here."""

from __future__ import annotations

from collections.abc import Collection

from smartmem_rules.language import syntax as s
from smartmem_rules.language.fixes import Fix, advice, replacement
from smartmem_rules.language.printing.builtin_docs import DOCS
from smartmem_rules.language.printing.printer import print_expression
from smartmem_rules.language.vocabulary import DTYPES

_SAME = {
    **dict.fromkeys(("len", "ndim", "ndims", "dim", "dims", "length"), "rank"),
    **dict.fromkeys(("is_constant", "is_const", "isconst", "isconstant", "const"), "constant"),
    **dict.fromkeys(("type", "element_type", "elem_type"), "dtype"),
    **dict.fromkeys(("maximum", "fmax"), "max"),
    **dict.fromkeys(("minimum", "fmin"), "min"),
    **dict.fromkeys(("fabs", "absolute"), "abs"),
    **dict.fromkeys(("power",), "pow"),
    **dict.fromkeys(("ln",), "log"),
    **dict.fromkeys(("logistic",), "sigmoid"),
    **dict.fromkeys(("negative",), "neg"),
    **dict.fromkeys(("reciprocal", "inv", "inverse"), "recip"),
    **dict.fromkeys(("close", "isclose", "allclose", "approx"), "near"),
    **dict.fromkeys(("has", "exists", "is_present"), "present"),
    **dict.fromkeys(("reversed",), "reverse"),
    **dict.fromkeys(("sorted",), "sort"),
    **dict.fromkeys(("cond", "ifelse", "iif"), "select"),
    **dict.fromkeys(("error", "raise", "throw", "panic", "abort", "die", "refuse", "reject", "unsupported"), "fail"),
    **dict.fromkeys(("num_uses", "users", "uses_of", "num_users", "use_count", "n_uses", "user_count"), "uses"),
    **dict.fromkeys(("rint", "roundeven", "nearbyint"), "round"),
    **dict.fromkeys(("product",), "prod"),
}
"""The same with the same arguments, under another name."""
_OTHER = {
    **dict.fromkeys(("size", "numel", "nelements", "elements"), "write `prod(shape({0}))` for the number of elements"),
    **dict.fromkeys(("where",), "write `if CONDITION then VALUE else OTHER`, or `select(CONDITION, VALUE, OTHER)`"),
    **dict.fromkeys(("clip",), "write `min(max({0}, LOW), HIGH)`"),
    **dict.fromkeys(("relu",), "write `max({0}, 0)`"),
    "log2": "write `log({0}) / 0.6931471805599453`",
    "log10": "write `log({0}) / 2.302585092994046`",
    "exp2": "write `2 ** {0}`",
    "cube": "write `{0} ** 3`",
    "trunc": "write `sign({0}) * floor(abs({0}))`",
    **dict.fromkeys(("silu", "swish"), "write `{0} * sigmoid({0})`"),
    "softplus": "write `log1p(exp({0}))`",
    "gelu": "write `0.5 * {0} * (1 + erf({0} * 0.7071067811865476))`",
    "leaky_relu": "write `max({0}, 0) + SLOPE * min({0}, 0)`",
    **dict.fromkeys(("var", "variance"), "a variance is a mean of squares: `mean(k < K) (x[k] - m[]) ** 2`"),
    **dict.fromkeys(("argmax", "argmin"), "write `first(k in K, x[k] == m[]) k`; `m[]` is the largest element"),
    "square": "a square is a power: write `{0} ** 2`",
    "sqr": "did you mean `sqrt`? a square is a power, `{0} ** 2`",
    **dict.fromkeys(("average", "avg"), "a mean is a reduction: `mean(k < K) x[k]`"),
    **dict.fromkeys(("is_scalar", "scalar"), "write `prod(shape({0})) == 1`, or `rank({0}) == 0`"),
    **dict.fromkeys(("in", "member", "isin"), "write `contains([1, 2], VALUE)`"),
    **dict.fromkeys(("has_one_use", "one_use", "single_use", "has_single_use", "hasOneUse"), "write `uses({0}) == 1`"),
    **dict.fromkeys(("divmod",), "write both: `m // K, m % K`"),
    **dict.fromkeys(("isinstance", "is_a", "is_op"), "name the operator in the pattern: `Add(Neg(x), y)`"),
    **dict.fromkeys(
        ("is_float", "is_floating_point", "is_integer"), 'write `contains(["float16", "float32"], dtype({0}))`'
    ),
    **dict.fromkeys(("print", "assert", "log_debug"), "leave it out: an expression only gives a value"),
    **dict.fromkeys(("transpose",), "write the indices in another order: `y[i, j] = x[j, i]`"),
    **dict.fromkeys(("dot", "matmul", "einsum"), "a product is a reduction: `sum(k < K) a[i, k] * b[k, j]`"),
    **dict.fromkeys(("softmax",), "name the operator in a rule, `Softmax(x)`, or write its equations"),
}
_SIGNS = {
    "Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Pow": "**", "Mod": "%", "Equal": "==", "Less": "<", "Greater": ">",
    "LessOrEqual": "<=", "GreaterOrEqual": ">=", "And": "and", "Or": "or",
}  # fmt: skip
"""Operators of tensors, and the signs by which expressions compute the same."""
_OPERATORS = {
    **dict.fromkeys(("Multiply", "Times", "Product"), "Mul"),
    **dict.fromkeys(("Subtract", "Minus"), "Sub"),
    **dict.fromkeys(("Divide", "TrueDiv"), "Div"),
    **dict.fromkeys(("Plus", "AddV2"), "Add"),
    **dict.fromkeys(("Negative", "Negate"), "Neg"),
    **dict.fromkeys(("Maximum",), "Max"),
    **dict.fromkeys(("Minimum",), "Min"),
    **dict.fromkeys(("Linear", "Dense", "FullyConnected", "InnerProduct", "Addmm"), "Gemm"),
    **dict.fromkeys(("Dot", "Mm", "Bmm", "BatchMatMul", "Matmul"), "MatMul"),
    **dict.fromkeys(("Permute", "SwapAxes"), "Transpose"),
    **dict.fromkeys(("View",), "Reshape"),
    **dict.fromkeys(("Cat", "Concatenate", "Stack"), "Concat"),
    **dict.fromkeys(("Inverse", "Inv"), "Reciprocal"),
    **dict.fromkeys(("Logistic",), "Sigmoid"),
    **dict.fromkeys(("SiLU", "Silu"), "Swish"),
    **dict.fromkeys(("Select",), "Where"),
    **dict.fromkeys(("BroadcastTo",), "Expand"),
    **dict.fromkeys(("Absolute",), "Abs"),
    **dict.fromkeys(("Power",), "Pow"),
    **dict.fromkeys(("Ln",), "Log"),
}
"""Operators of frameworks and what they are in ONNX."""
_NUMBERS = {
    **dict.fromkeys(("half", "fp16", "f16"), "float16"),
    **dict.fromkeys(("bf16", "bfloat"), "bfloat16"),
    **dict.fromkeys(("double", "fp64", "f64"), "float64"),
    **dict.fromkeys(("single", "fp32", "f32"), "float32"),
    **dict.fromkeys(("long", "longlong", "i64", "s64", "int64_t"), "int64"),
    **dict.fromkeys(("i32", "s32", "int32_t"), "int32"),
    **dict.fromkeys(("short", "i16", "s16", "int16_t"), "int16"),
    **dict.fromkeys(("char", "schar", "i8", "s8", "int8_t"), "int8"),
    **dict.fromkeys(("ulong", "u64", "uint64_t", "size_t"), "uint64"),
    **dict.fromkeys(("uint", "unsigned", "u32", "uint32_t"), "uint32"),
    **dict.fromkeys(("ushort", "u16", "uint16_t"), "uint16"),
    **dict.fromkeys(("byte", "uchar", "u8", "uint8_t"), "uint8"),
    **dict.fromkeys(("boolean", "bool_t", "i1"), "bool"),
}
"""Dtypes of other languages."""
_KINDS = {
    **dict.fromkeys(("integer",), "int"),
    **dict.fromkeys(("str", "text", "char"), "string"),
    **dict.fromkeys(("list", "tuple", "array", "vector"), "ints"),
    **dict.fromkeys(("number", "real", "scalar"), "float"),
}
"""Kinds of attributes of other languages, and the dtype of texts."""
_TYPES_OF_C = {
    **dict.fromkeys(
        ("double", "single", "half", "fp32", "fp64", "f32", "f64", "float32", "float64", "float16"), "float"
    ),
    **dict.fromkeys(("long", "i64", "i32", "int32", "int64", "int8", "uint8", "size_t", "unsigned", "short"), "int"),
    **dict.fromkeys(("list", "tuple", "array", "vector", "shape", "axes"), "ints"),
}
"""The kinds of attributes that numbers of other languages would have."""
_TYPES = {**dict.fromkeys(DTYPES), "double": "float64", "half": "float16", "long": "int64", "int": "int64"}


def of_another_language(call: s.Call, place: s.Span, known: Collection[str]) -> Fix | None:
    """How to write a function that other languages have."""
    name = call.function
    counted = call.arguments[0] if call.arguments else None
    if name == "len" and isinstance(counted, s.Name) and not counted.id[:1].isupper():  # those are lists of extents
        x = counted.id
        return advice(
            f"write `count({x})` for how many tensors a list has, `rank({x})` for the number of axes, or of the "
            f"entries of an attribute, `extent({x}, 0)` for that of the first one's elements"
        )
    same = _SAME.get(name)
    if same is not None and same in known:
        return replacement(f"write `{same}`", place, same)
    sign = _SIGNS.get(name)
    if sign is not None and len(call.arguments) == 2:
        new = f" {sign} ".join(map(_factor, call.arguments))
        whole = ", or `//` for whole numbers" if sign == "/" else ""
        return replacement(f"operators are of tensors: write `{new}` here{whole}", call.span, new)
    if name in ("Neg", "Not") and len(call.arguments) == 1:
        new = f"{'-' if name == 'Neg' else 'not '}{_factor(call.arguments[0])}"
        return replacement(f"operators are of tensors: write `{new}` here", call.span, new)
    if name in _TYPES:
        return advice(f"write `cast(x, {_TYPES[name] or name})`")
    if name not in _OTHER:
        return None
    argument = call.arguments[0] if call.arguments else s.Name(place, "x")
    if "dtype({0})" in _OTHER[name] and isinstance(argument, s.Call) and argument.function == "dtype":
        return advice(_OTHER[name].replace("dtype({0})", print_expression(argument)))
    return advice(_OTHER[name].replace("{0}", _factor(argument)))


def _factor(expr: s.Expression) -> str:
    """An expression as the base of a power."""
    shown = print_expression(expr)
    return shown if isinstance(expr, s.Name | s.Subscript | s.Call | s.Number) else f"({shown})"


def operator_elsewhere(name: str, place: s.Span, known: Collection[str]) -> Fix | None:
    """The operator that other frameworks call by a name."""
    same = _OPERATORS.get(name) or _OPERATORS.get(name[:1].upper() + name[1:])
    return replacement(f"write `{same}`", place, same) if same is not None and same in known else None


def kind_elsewhere(name: str, place: s.Span, known: Collection[str]) -> Fix | None:
    """The dtype or the kind of attribute that other languages call by a name."""
    same = _NUMBERS.get(name.lower())
    if same not in known:
        same = _KINDS.get(name.lower())
    if same not in known and name in _TYPES_OF_C:
        same = _TYPES_OF_C[name]
    return replacement(f"write `{same}`", place, same) if same is not None and same in known else None


def text_elsewhere(word: str, place: s.Span) -> Fix | None:
    """The dtype that other languages call by a word, as a text."""
    same = dtype_elsewhere(word)
    return replacement(f'write `"{same}"`', place, f'"{same}"') if same is not None else None


def dtype_elsewhere(word: str) -> str | None:
    """The dtype that other languages call by a word."""
    return _NUMBERS.get(word.lower())


_ONNX_DTYPES = (
    "float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16", "float64", "uint32",
    "uint64",
)  # fmt: skip
"""The element types that ONNX numbers, from 1 on."""


def dtype_of_onnx(value: s.Expression) -> str | None:
    """The dtype that ONNX calls by a number."""
    if isinstance(value, s.Number) and isinstance(value.value, int) and 0 < value.value <= len(_ONNX_DTYPES):
        return _ONNX_DTYPES[value.value - 1]
    return None


def how_called(function: str) -> Fix | None:
    """How a built-in function is called."""
    said = DOCS.get(function)
    return None if said is None else advice(f"write `{said[0]}`: {said[1]}")
