"""Files that are written whole or not at all: errors, full disks, Ctrl-C and kill -9 in between."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from smartmem_rules import whole_files
from smartmem_rules.whole_files import whole_file, write_whole


@pytest.fixture(params=["unnamed", "named"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With files that have no name yet, and as on systems that have none."""
    if request.param == "named":
        monkeypatch.setattr(whole_files, "_unnamed", lambda folder: None)
    return str(request.param)


@pytest.mark.parametrize("target", ["", ".", "/"])
def test_a_folder_is_no_file(way: str, target: str) -> None:
    with pytest.raises(IsADirectoryError):
        write_whole(target, b"content")


def test_new_and_present_files(way: str, tmp_path: Path) -> None:
    target = tmp_path / "file"
    for content in (b"first", b"second, longer", b""):
        write_whole(target, content)
        assert target.read_bytes() == content
        assert list(tmp_path.iterdir()) == [target]
    mask = os.umask(0)
    os.umask(mask)
    assert target.stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_what_ends_the_writing_leaves_the_old_file(way: str, tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"old")

    def write_half() -> None:
        with whole_file(target) as stream:
            stream.write(b"half of it")
            stream.flush()
            raise error

    with pytest.raises(error):
        write_half()
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("target", ["missing/file", "."])
def test_places_that_take_no_file(way: str, tmp_path: Path, target: str) -> None:
    with pytest.raises(OSError, match=r"No such file|Is a directory|File exists|not empty|busy"):
        write_whole(tmp_path / target, b"content")
    assert list(tmp_path.iterdir()) == []


def child(act: Callable[[], None]) -> int:
    """The status of a fork of this process that does something and ends."""
    process = os.fork()
    if process == 0:
        try:
            act()
            os._exit(0)
        except OSError:
            os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_full_disk(way: str, tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"old")

    def write_more_than_fits() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        write_whole(target, bytes(100_000))

    assert child(write_more_than_fits) == 7
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="this system has no files without a name")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_killed_process_leaves_nothing(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"old")

    def write_until_killed() -> None:
        with whole_file(target) as stream:
            stream.write(bytes(100_000))
            stream.flush()
            os.kill(os.getpid(), signal.SIGKILL)

    assert child(write_until_killed) == -signal.SIGKILL
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]
