"""OpenCL C for the elementwise primitives of the rule language.

`codegen/prelude.cl` defines the functions named `smr_*` for scalars and for vectors of 4 and 8 floats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from smartmem_rules.plan.kernel.addressing import INTEGER_VECTORS as VECTOR_INTEGERS
from smartmem_rules.tensor.types import NARROW_FLOATS, NARROW_INTEGERS, register_type

INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
BITS = {"bit_and": "&", "bit_or": "|", "bit_xor": "^", "shift_left": "<<", "shift_right": ">>"}
PLAIN = {
    "and": "({0} && {1})", "or": "({0} || {1})", "not": "(!{0})", "select": "({0} ? {1} : {2})",
    "isnan": "(isnan({0}) != 0)", "isinf": "(isinf({0}) != 0)",
}  # fmt: skip
PRELUDE = frozenset(["exp", "erf", "sigmoid", "tanh", "recip", "sign", "sin", "cos", "tan", "fma"])
"""Functions of floats that the prelude defines for each width up to `WIDEST`."""
WIDEST = 8
"""Lanes up to which the prelude defines functions; wider vectors only add and multiply."""
NARROW = {"int8": "char", "int16": "short", "uint8": "uchar", "uint16": "ushort"}
"""The C types of integers that are computed in int."""
WRAPPING = {"int32": ("int", "uint"), "int64": ("long", "ulong")}
"""Signed integers wrap in ONNX; in C only unsigned ones do."""
ROUNDED = {"float16": "smr_round_half", "bfloat16": "smr_round_bfloat"}
"""What rounds a float to a type that is computed in float."""
NATIVE = {"abs": "fabs", "round": "rint"}
"""Functions of floats whose OpenCL name differs; all others have the same name in both."""


_FORMATS = {
    "float8_e4m3fn": (3, -6, "448.0f", "NAN"),
    "float8_e4m3fnuz": (3, -7, "240.0f", "NAN"),
    "float8_e5m2": (2, -14, "57344.0f", "INFINITY"),
    "float8_e5m2fnuz": (2, -15, "57344.0f", "NAN"),
    "float4_e2m1fn": (1, 0, "6.0f", "6.0f"),
}
"""Of a small float: bits of the mantissa, least exponent, largest value, and what lies beyond it."""


def compute_type(dtype: str, width: int = 1) -> str:
    """The C type that values of the dtype have in registers."""
    names = {"float32": "float", "float64": "double", "int32": "int", "uint32": "uint", "int64": "long"}
    base = {**names, "uint64": "ulong"}[register_type(dtype)]
    return base if width == 1 else f"{base}{width}"


def is_float(dtype: str) -> bool:
    return dtype in ("float32", "float16", "bfloat16") or dtype in NARROW_FLOATS


def has_vectors(dtype: str) -> bool:
    """Whether CPUs compute several values of the type at a time: floats, and integers that are computed in int."""
    return is_float(dtype) or dtype in VECTOR_INTEGERS


def is_defined(function: str, width: int) -> bool:
    """Whether a function of floats can be called for so many lanes at a time."""
    return width <= WIDEST or function not in PRELUDE | {"max", "min"}


def has_vector_form(function: str, dtype: str, sources: Sequence[str]) -> bool:
    """Whether OpenCL C can compute a primitive on whole vectors where some operands are integers."""
    if function == "cast":
        return all(one == "float32" or one in VECTOR_INTEGERS for one in (dtype, *sources))
    if is_float(dtype):
        return function not in ("select", "mod", "fmod") and all(map(is_float, sources))
    return function in ("add", "sub", "mul", "min", "max", "bit_and", "bit_or", "bit_xor")


def literal(value: float | int | bool, dtype: str) -> str:
    if dtype == "bool":
        return "1" if value else "0"
    if is_float(dtype) or dtype == "float64":
        number = float(value)
        if math.isinf(number):
            return _infinity("-" if number < 0 else "", dtype)
        if math.isnan(number):
            return "((double)NAN)" if dtype == "float64" else "NAN"
        text = repr(number)
        if "e" not in text and "." not in text:
            text += ".0"
        return text if dtype == "float64" else text + "f"
    if dtype.startswith("uint"):
        value = int(value) % 2 ** int(dtype[4:])
    suffix = {"int64": "L", "uint64": "UL", "uint32": "u"}.get(dtype, "")
    lowest = {("int64", -(2**63)): "LONG_MIN", ("int32", -(2**31)): "INT_MIN"}.get((dtype, int(value)))
    if lowest is not None:
        return lowest
    return f"{int(value)}{suffix}"


def _infinity(sign: str, dtype: str) -> str:
    # OpenCL's constant is a float: beside a double a call of fmin would be ambiguous
    return f"((double)({sign}INFINITY))" if dtype == "float64" else f"{sign}INFINITY"


def identity(kind: str, dtype: str) -> str:
    """The neutral value of a reduction."""
    if kind in ("sum", "any"):
        return literal(0, dtype)
    if kind in ("prod", "all"):
        return literal(1, dtype)
    sign = "-" if kind == "max" else ""
    if dtype in ("float32", "float16", "bfloat16", "float64"):
        return _infinity(sign, dtype)
    limits = {"long": ("LONG_MIN", "LONG_MAX"), "ulong": ("0UL", "ULONG_MAX"), "uint": ("0u", "UINT_MAX")}
    low, high = limits.get(compute_type(dtype), ("INT_MIN", "INT_MAX"))
    return low if kind == "max" else high


def combine(kind: str, left: str, right: str, dtype: str, width: int) -> str:
    """One step of a reduction."""
    match kind:
        case "sum":
            return _infix("+", left, right, dtype, width)
        case "prod":
            return _infix("*", left, right, dtype, width)
        case "any":
            return f"({left} || {right})"
        case "all":
            return f"({left} && {right})"
        case _:
            return _extreme(kind, left, right, dtype, width)


def _extreme(kind: str, left: str, right: str, dtype: str, width: int) -> str:
    if is_float(dtype):
        return f"smr_{kind}{width}({left}, {right})"
    if dtype == "float64":
        return f"smr_{kind}_d({left}, {right})"
    return f"{kind}({left}, {right})"


def apply(function: str, arguments: list[str], dtype: str, source: str, width: int) -> str:
    """The primitive applied to rendered operands.

    Args:
        dtype: the type of the result.
        source: the type of the first operand.
        width: 1, or the lanes of a float vector.
    """
    if function in INFIX:
        if function == "div" and not is_float(dtype) and dtype != "float64":
            return f"smr_div_{_suffix(dtype)}({arguments[0]}, {arguments[1]})"
        return f"({_infix(INFIX[function], arguments[0], arguments[1], dtype, width)})"
    if function == "neg":
        return f"({_negated(arguments[0], dtype)})"
    if function in COMPARISONS:
        return f"({arguments[0]} {COMPARISONS[function]} {arguments[1]})"
    if function in BITS:
        return _bits(function, arguments, dtype)
    if function in PLAIN:
        return PLAIN[function].format(*arguments)
    match function:
        case "cast":
            return cast(arguments[0], source, dtype) if width == 1 else cast_vector(arguments[0], source, dtype, width)
        case "bitcast":
            return bitcast(arguments[0], source, dtype, width)
        case "min" | "max":
            return _extreme(function, arguments[0], arguments[1], dtype, width)
    if is_float(dtype):
        return _float_function(function, arguments, width)
    return _other_function(function, arguments, dtype)


def _infix(sign: str, left: str, right: str, dtype: str, width: int = 1) -> str:
    if width > 1 and dtype in VECTOR_INTEGERS:
        return f"as_int{width}(as_uint{width}({left}) {sign} as_uint{width}({right}))"
    if dtype in WRAPPING:
        signed, unsigned = WRAPPING[dtype]
        return f"({signed})(({unsigned}){left} {sign} ({unsigned}){right})"
    return f"{left} {sign} {right}"


def _negated(value: str, dtype: str) -> str:
    if dtype in WRAPPING:
        return _infix("-", "0", value, dtype)
    return f"-({value})" if value.startswith("-") else f"-{value}"  # "--" is another operator of C


def _bits(function: str, arguments: list[str], dtype: str) -> str:
    text = f"({arguments[0]} {BITS[function]} {arguments[1]})"
    if function.startswith("shift"):
        # a shift by all bits or more, or by a negative number, is undefined in C
        bits = int(dtype.removeprefix("u").removeprefix("int"))
        fill = f"({arguments[0]} < 0 ? -1 : 0)" if function == "shift_right" and not dtype.startswith("u") else "0"
        inside = f"{arguments[1]} < {bits}"
        if not dtype.startswith("u"):
            inside = f"{arguments[1]} >= 0 && {inside}"
        return f"({inside} ? {text} : {fill})"
    return text


def _float_function(function: str, arguments: list[str], width: int) -> str:
    if function in PRELUDE:
        return f"smr_{function}{width}({', '.join(arguments)})"
    match function:
        case "mod":
            return f"smr_mod({arguments[0]}, {arguments[1]})"
        case "floordiv":
            return f"floor({arguments[0]} / {arguments[1]})"
    return f"{NATIVE.get(function, function)}({', '.join(arguments)})"


def _other_function(function: str, arguments: list[str], dtype: str) -> str:
    if dtype == "float64":
        doubles = {"sigmoid": "(1.0 / (1.0 + exp(-{0})))", "recip": "(1.0 / {0})", "mod": "smr_mod_d({0}, {1})",
                   "sign": "smr_sign_d({0})", "floordiv": "floor({0} / {1})"}  # fmt: skip
        if function in doubles:
            return doubles[function].format(*arguments)
        return f"{NATIVE.get(function, function)}({', '.join(arguments)})"
    match function:
        case "abs":
            return f"({arguments[0]} < 0 ? {_negated(arguments[0], dtype)} : {arguments[0]})"
        case "sign":
            return f"(({arguments[0]} > 0) - ({arguments[0]} < 0))"
        case "mod" | "floordiv" | "pow" | "fmod":
            return f"smr_{function}_{_suffix(dtype)}({arguments[0]}, {arguments[1]})"
        case "floor" | "ceil" | "round":
            return arguments[0]
    raise ValueError(f"no kernel text for {function} of {dtype}")


def _suffix(dtype: str) -> str:
    return {"int": "i", "uint": "u", "long": "l", "ulong": "ul"}[compute_type(dtype)]


def narrowed(text: str, dtype: str, width: int = 1) -> str:
    """A result that is computed in int, wrapped to the dtype's own width."""
    narrow = NARROW.get(dtype)
    if narrow is not None and width > 1:
        return f"convert_int{width}(convert_{narrow}{width}({text}))"
    return text if narrow is None else f"(int)({narrow})({text})"


def bitcast(value: str, source: str, target: str, width: int) -> str:
    if "float" in source or "float" in target:
        return f"as_{compute_type(target, width)}({value})"
    return cast(value, source, target)  # integers wrap to the same bits


def cast(value: str, source: str, target: str) -> str:
    if target == "bool":
        return f"({value} != 0)"
    if target in NARROW_INTEGERS:
        whole = f"({_whole(value, source, 'int')})"
        bits = NARROW_INTEGERS[target]
        mask = f"({whole} & {2**bits - 1})"
        return mask if target.startswith("u") else f"(({whole} << {32 - bits}) >> {32 - bits})"
    if target in _FORMATS and source != target:
        mantissa, least, largest, beyond = _FORMATS[target]
        zero = " + 0.0f" if target.endswith("fnuz") else ""  # it has no negative zero
        return f"(smr_round_small((float)({value}), {mantissa}, {least}, {largest}, {beyond}){zero})"
    if target == "float8_e8m0fnu":
        return f"((float)({value}))"  # the definition of Cast has made a power of two of it
    if target in NARROW_FLOATS and source != target:
        raise ValueError(f"no kernel text for a cast to {target}")
    if target in NARROW_FLOATS or target in ("float32", "float64", "float16", "bfloat16"):
        if target in ROUNDED and source not in (target, "bool"):
            return f"{ROUNDED[target]}({value})"
        return f"(({compute_type(target)}){value})"
    narrow = NARROW.get(target)
    through = {"uint32": "long", "int64": "long", "uint64": "ulong"}.get(target, "int")
    return f"(({compute_type(target)}){f'({narrow})' if narrow else ''}{_whole(value, source, through)})"


def cast_vector(value: str, source: str, target: str, width: int) -> str:
    """A conversion of the lanes of a vector; of floats, and of integers that are computed in int."""
    if target in NARROW or target == "int32":
        whole = value if source in VECTOR_INTEGERS else f"smr_to_int_f{width}({value})"
        return narrowed(whole, target, width)
    return value if is_float(source) else f"convert_float{width}({value})"


def _whole(value: str, source: str, kind: str) -> str:
    """A number as int, long or ulong; floats are truncated."""
    if "float" not in source:
        return f"({kind})({value})"
    return f"smr_to_{kind}_{'d' if source == 'float64' else 'f'}({value})"
