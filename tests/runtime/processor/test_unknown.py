"""A processor that PoCL's LLVM does not know: which name it gets, and what is left alone."""

from __future__ import annotations

import ctypes
import mmap
from pathlib import Path
from types import SimpleNamespace

import pytest

from smartmem_rules.runtime.processor.unknown import ProcessorError, name_processor

_V2 = "fpu cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3"
_V3 = f"{_V2} avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"
_V4 = f"{_V3} avx512f avx512bw avx512cd avx512dq avx512vl"
_BYTES = (
    f"{_V4} avx512ifma avx512vbmi avx512_vbmi2 avx512_vnni avx512_bitalg avx512_vpopcntdq aes gfni pclmulqdq sha_ni "
    "vaes vpclmulqdq adx clflushopt clwb rdpid"
)


class _Record:
    """What PoCL keeps of a device, as far as it matters here: numbers, a triple, the processor's name."""

    def __init__(self, triple: str, name: str) -> None:
        self._texts = [ctypes.create_string_buffer(text.encode(), 128) for text in (triple, name)]
        self.words = (ctypes.c_size_t * 300)(7, 1 << 60, *map(ctypes.addressof, self._texts), 5)
        self.handle = SimpleNamespace(int_ptr=ctypes.addressof(self.words))

    @property
    def name(self) -> str:
        return ctypes.string_at(self.words[3]).decode()


def _processors(folder: Path, flags: str) -> Path:
    path = folder / "cpuinfo"
    path.write_text(f"processor\t: 0\nflags\t\t: {flags}\nbugs\t\t: none\n")
    return path


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ("fpu sse2", "x86-64"),
        (_V2, "x86-64-v2"),
        (_V3, "x86-64-v3"),
        (_V4, "x86-64-v4"),
        (_BYTES, "icelake-server"),
        (_BYTES.replace("avx512_vnni", ""), "x86-64-v4"),
        (_V4.replace("avx512vl", ""), "x86-64-v3"),
        (_V4.replace("sse4_2", ""), "x86-64"),
    ],
)
def test_unknown_processor_is_named_after_its_instructions(tmp_path: Path, flags: str, name: str) -> None:
    record = _Record("x86_64-unknown-linux-gnu", "generic")
    level = name_processor(record.handle, _processors(tmp_path, flags))
    assert level is not None
    assert level.name == name
    assert record.name == name


@pytest.mark.parametrize("flags", [_V4, _BYTES])
def test_processor_named_after_its_family_only(tmp_path: Path, flags: str) -> None:
    """LLVM 14 calls the fourth generation of AMD's by the name of the third, which has no AVX-512."""
    record = _Record("x86_64-unknown-linux-gnu", "znver3")
    level = name_processor(record.handle, _processors(tmp_path, flags))
    assert level is not None
    assert level.lanes == 16
    assert record.name == level.name
    words = list(record.words)
    assert name_processor(record.handle, _processors(tmp_path, flags)) is None, "the name is one that says it all"
    assert list(record.words) == words


@pytest.mark.parametrize("name", ["generic", "znver3", "skylake-avx512"])
def test_level_that_is_asked_for(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMARTMEM_PROCESSOR", "x86-64-v3")
    record = _Record("x86_64-unknown-linux-gnu", name)
    for _ in range(2):
        level = name_processor(record.handle, _processors(tmp_path, _BYTES))
        assert level is not None
        assert level.lanes == 8
        assert record.name == "x86-64-v3"


@pytest.mark.parametrize("asked", ["x86-64-v4", "icelake-server", "avx2", "x86-64-v5"])
def test_level_that_cannot_be_had(tmp_path: Path, asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMARTMEM_PROCESSOR", asked)
    record = _Record("x86_64-unknown-linux-gnu", "znver3")
    with pytest.raises(ProcessorError, match=f"SMARTMEM_PROCESSOR={asked}"):
        name_processor(record.handle, _processors(tmp_path, _V3))
    assert record.name == "znver3"


@pytest.mark.parametrize(
    ("triple", "name", "flags"),
    [
        ("x86_64-unknown-linux-gnu", "skylake-avx512", _V4),
        ("x86_64-unknown-linux-gnu", "znver3", _V3),
        ("aarch64-unknown-linux-gnu", "generic", _V4),
        ("generic", "generic", _V4),
    ],
)
def test_known_processors_and_other_machines_are_left_alone(tmp_path: Path, triple: str, name: str, flags: str) -> None:
    record = _Record(triple, name)
    before = list(record.words)
    assert name_processor(record.handle, _processors(tmp_path, flags)) is None
    assert list(record.words) == before


def test_words_that_point_nowhere_end_no_process(tmp_path: Path) -> None:
    """PoCL's record holds numbers, freed pointers and pointers into memory that another thread gives back."""
    record = _Record("x86_64-unknown-linux-gnu", "generic")
    with mmap.mmap(-1, mmap.PAGESIZE) as given_back:
        gone = ctypes.addressof(ctypes.c_char.from_buffer(given_back))
    record.words[0], record.words[1], record.words[5], record.words[6] = 8, gone, 2**64 - 4096, 2**63
    level = name_processor(record.handle, _processors(tmp_path, _V4))
    assert level is not None
    assert level.name == "x86-64-v4"


def test_processor_that_cannot_be_told_is_left_alone(tmp_path: Path) -> None:
    record = _Record("x86_64-unknown-linux-gnu", "generic")
    assert name_processor(record.handle, tmp_path / "missing") is None
    assert record.name == "generic"
