"""Gets implementations of OpenCL without touching the system: Debian folders to `chroot` into, wheels in a folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from tests.opencl.implementations import Implementation

ROOT = Path(__file__).resolve().parents[2]
MIRROR = os.environ.get("SMARTMEM_DEBIAN", "http://deb.debian.org/debian")
_LIBRARIES = ("libssl3", "libffi8", "libsqlite3-0", "libbz2-1.0", "liblzma5", "libreadline8", "libexpat1", "zlib1g")
"""What Python may be linked with; a release that has none of a name has one that replaces it."""
_ENTER = """
root=$0
for folder in $SMARTMEM_BINDS; do mkdir -p "$root$folder" && mount --rbind "$folder" "$root$folder" || exit 3; done
exec chroot "$root" "$@"
"""


class MissingError(Exception):
    """An implementation cannot be had here; the message says why."""


def command_of(one: Implementation, folder: Path, command: list[str]) -> tuple[list[str], dict[str, str]]:
    """A command and its environment, with which it finds this implementation alone.

    Args:
        folder: where what is fetched is kept.

    Raises:
        MissingError: the implementation cannot be fetched.
    """
    if one.release:
        return _in_release(one, folder, command)
    root = _wheels(one, folder) if one.wheels else folder
    import pyopencl

    bundled = Path(pyopencl.__file__).parent / ".libs"
    places = {"root": str(root), "pyopencl": str(bundled)}
    if not Path(one.icd.format(**places)).exists():
        raise MissingError(f"there is no {one.icd.format(**places)}")
    own = {name: value.format(**places) for name, value in one.environment.items()}
    return command, {**_environment(one, folder), **own, "OCL_ICD_VENDORS": one.icd.format(**places)}


def _environment(one: Implementation, folder: Path) -> dict[str, str]:
    """The user's environment without what steers drivers, and caches of the implementation's own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("POCL_", "OCL_"))}
    return {**kept, "PYTHONPATH": str(ROOT), "SMARTMEM_CACHE": str(folder / f"cache-{one.name}")}


def _in_release(one: Implementation, folder: Path, command: list[str]) -> tuple[list[str], dict[str, str]]:
    root = _release(one.release, folder)
    marker = root / f".has-{one.name}"
    if not marker.exists():
        _call(["chroot", str(root), "apt-get", "install", "-y", "--no-install-recommends", *one.packages], one.name)
        if one.library:
            (root / one.icd.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
            (root / one.icd.lstrip("/")).write_text(f"{one.library}\n")
        marker.touch()
    binds = {"/proc", "/sys", "/dev", "/tmp", str(ROOT), str(folder), sys.prefix, sys.base_prefix}
    binds |= {str(Path(path).resolve()) for path in (sys.prefix, sys.base_prefix)}
    environment = {**_environment(one, folder), **one.environment, "OCL_ICD_VENDORS": one.icd}
    environment["SMARTMEM_BINDS"] = " ".join(sorted(binds))
    inside = ["sh", "-c", f'cd {ROOT} && exec "$@"', "sh", *command]
    return ["unshare", "--mount", "sh", "-c", _ENTER, str(root), *inside], environment


def _release(name: str, folder: Path) -> Path:
    """A minimal Debian of a release in a folder."""
    root = folder / name
    if (root / ".complete").exists():
        return root
    if os.geteuid() != 0:
        raise MissingError("only root may make and enter the folder of a Debian release")
    if shutil.which("unshare") is None or shutil.which("dpkg") is None:
        raise MissingError("this system has no `unshare` or no `dpkg`")
    shutil.rmtree(root, ignore_errors=True)
    environment = {"PATH": os.environ["PATH"]}
    program = shutil.which("debootstrap")
    if program is None:
        tools = folder / "debootstrap"
        tools.mkdir(parents=True, exist_ok=True)
        _call(["apt-get", "download", "debootstrap"], name, cwd=tools)
        for package in tools.glob("*.deb"):
            _call(["dpkg", "-x", str(package), str(tools)], name)
        program = str(tools / "usr/sbin/debootstrap")
        environment["DEBOOTSTRAP_DIR"] = str(tools / "usr/share/debootstrap")
    _call([program, "--variant=minbase", name, str(root), MIRROR], name, env=environment)
    for library in _LIBRARIES:
        names = [library, f"{library}t64"]
        if not any(_succeeds(["chroot", str(root), "apt-get", "install", "-y", one]) for one in names):
            raise MissingError(f"the release {name} has none of {', '.join(names)}")
    (root / ".complete").touch()
    return root


def _wheels(one: Implementation, folder: Path) -> Path:
    root = folder / one.name
    driver = root / f"{one.name}.icd"
    if not driver.exists():
        venv.create(root, with_pip=True, clear=True)
        _call([str(root / "bin" / "python"), "-m", "pip", "install", "--quiet", *one.wheels], one.name)
        (library,) = (root / "lib").glob("libintelocl.so")
        driver.write_text(f"{library}\n")
    return root


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _call(command: list[str], what: str, **options: object) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise MissingError(f"{what}: `{' '.join(command[:4])} ...` failed: {said[-1] if said else done.returncode}")
