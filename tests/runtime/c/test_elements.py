"""Elements of few bits in the host's memory: the C runtime rounds and widens them as numpy and ml_dtypes do."""

from __future__ import annotations

import ctypes as c

import ml_dtypes
import numpy as np
import pytest

from smartmem_rules.tensor.types import ALL_DTYPES
from tests.runtime.c.library import DEFINITIONS, SOURCES, Array, compiler, run

FLOATS = {
    "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz, "float8_e8m0fnu": ml_dtypes.float8_e8m0fnu,
    "float4_e2m1fn": ml_dtypes.float4_e2m1fn,
}  # fmt: skip


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> c.CDLL:
    library = tmp_path_factory.mktemp("elements") / "libelements.so"
    include = [f"-I{SOURCES / name}" for name in ("src", "include")]
    part = SOURCES / "src" / "elements.c"
    run(compiler(), *DEFINITIONS, "-O2", "-fPIC", "-shared", *include, "-o", library, part, "-lm")
    return c.CDLL(str(library))


def copied(functions: c.CDLL, array: Array, to: str) -> Array:
    """The array in another element type."""
    found = np.zeros(array.shape, np.float32 if to == "float32" else FLOATS[to])
    kinds = [c.c_int(ALL_DTYPES.index(name) + 1) for name in (to, array.dtype.name)]
    places = [c.c_void_p(one.ctypes.data) for one in (found, array)]
    functions.elements_copy(places[0], kinds[0], places[1], kinds[1], c.c_size_t(array.size))
    return found


def every(name: str) -> Array:
    """All codes of a type."""
    dtype = np.dtype(FLOATS[name])
    bits = 4 if name == "float4_e2m1fn" else 8 * dtype.itemsize
    return np.arange(1 << bits).astype(f"uint{8 * dtype.itemsize}").view(dtype)


@pytest.mark.parametrize("name", FLOATS)
def test_all_codes_widen(functions: c.CDLL, name: str) -> None:
    codes = every(name)
    np.testing.assert_array_equal(copied(functions, codes, "float32"), codes.astype(np.float32))


@pytest.mark.parametrize("name", FLOATS)
def test_all_values_become_their_codes_again(functions: c.CDLL, name: str) -> None:
    values = every(name).astype(np.float32)
    values = values[~np.isnan(values)]
    np.testing.assert_array_equal(
        copied(functions, values, name).view(np.uint8), values.astype(FLOATS[name]).view(np.uint8)
    )


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e5m2"])
def test_floats_are_rounded(functions: c.CDLL, name: str) -> None:
    values = every(name).astype(np.float32)
    values = np.sort(values[np.isfinite(values) & (values > 0)])
    with np.errstate(over="ignore"):
        middle = (values[1:].astype(np.float64) + values[:-1]).astype(np.float32) / 2
        near = [np.nextafter(one, np.float32(side)) for one in (values, middle) for side in (0, np.inf)]
        drawn = np.random.default_rng(1).integers(0, 1 << 32, 4000).astype(np.uint32).view(np.float32)
        special = np.array([np.inf, -np.inf, 65504, 65519, 65520, 1e9, 3.4e38, 1e-45, -0.0], np.float32)
        given = np.concatenate([values, middle, *near, drawn[~np.isnan(drawn)], special])
        given = np.concatenate([given, -given]).astype(np.float32)
        wanted = given.astype(FLOATS[name])
    np.testing.assert_array_equal(copied(functions, given, name).view(np.uint8), wanted.view(np.uint8))
