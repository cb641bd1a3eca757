"""SHA-256 in C and by the processor's instructions, which give what Python's gives."""

from __future__ import annotations

import ctypes
import hashlib
import random

import pytest

from tests.runtime.c.library import DEFINITIONS, SOURCES, compiler, run


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library = tmp_path_factory.mktemp("sha256") / "libsha256.so"
    parts = [SOURCES / "src" / f"{name}.c" for name in ("sha256", "sha256_blocks")]
    run(compiler(), *DEFINITIONS, "-O2", "-fPIC", "-shared", f"-I{SOURCES / 'src'}", "-o", library, *parts)
    return ctypes.CDLL(str(library))


def test_digests_of_texts_in_pieces(functions: ctypes.CDLL) -> None:
    draw = random.Random(1)
    for _ in range(200):
        data = draw.randbytes(draw.randrange(400))
        state, found = (ctypes.c_uint64 * 16)(), (ctypes.c_uint8 * 32)()
        functions.sha256_begin(state)
        at = 0
        while at < len(data):
            part = data[at : at + draw.randrange(1, 200)]
            functions.sha256_add(state, part, ctypes.c_size_t(len(part)))
            at += len(part)
        functions.sha256_end(state, found)
        assert bytes(found) == hashlib.sha256(data).digest(), data.hex()


def test_instructions_do_what_the_plain_loop_does(functions: ctypes.CDLL) -> None:
    draw = random.Random(2)
    blocks = draw.randbytes(64 * 9)
    plain, fast = ((ctypes.c_uint32 * 8)(*range(8)) for _ in range(2))
    functions.sha256_take_by_instructions.restype = ctypes.c_bool
    if not functions.sha256_take_by_instructions(fast, blocks, ctypes.c_size_t(9)):
        pytest.skip("this processor has no instructions for SHA-256")
    functions.sha256_take_plainly(plain, blocks, ctypes.c_size_t(9))
    assert list(plain) == list(fast)
