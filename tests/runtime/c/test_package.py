"""libsmartmem as others get it: what it exports and needs, its size, its files for CMake, pkg-config and C++."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.runtime.c.library import SOURCES, installed, run

HEADER = SOURCES / "include" / "smartmem.h"
MOST_BYTES = 300_000
PROGRAM = """
#include <smartmem.hpp>
int main() {
    try {
        smartmem::Plan plan("nothing");
    } catch (const smartmem::Error &error) {
        if (error.status() != SMARTMEM_BAD_FILE)
            return 1;
    }
    try {
        smartmem::Plan::fitting({"nothing", "nowhere"});
    } catch (const smartmem::Error &error) {
        return error.status() != SMARTMEM_BAD_FILE;
    }
    return 1;
}
"""
PROJECT = """
cmake_minimum_required(VERSION 3.16)
project(user LANGUAGES CXX)
find_package(smartmem 1 REQUIRED)
add_executable(user user.cpp)
target_link_libraries(user smartmem::smartmem)
"""


def test_it_exports_its_header_and_nothing_else() -> None:
    declared = set(re.findall(r"\b(smartmem_\w+)\(", HEADER.read_text("utf-8"))) - {"smartmem_callback"}
    lines = run("nm", "-D", "--defined-only", installed() / "lib" / "libsmartmem.so").splitlines()
    assert {line.split()[-1] for line in lines} == declared


def test_it_is_small_and_needs_the_c_library_only() -> None:
    library = installed() / "lib" / "libsmartmem.so"
    assert library.stat().st_size <= MOST_BYTES
    needed = re.findall(r"NEEDED.*\[(.*?)\]", run("readelf", "-d", library))
    assert [name for name in needed if not re.match(r"(libc|libm|libdl|libpthread|ld-linux.*)\.so", name)] == []


def test_the_version_is_one() -> None:
    header = re.findall(r'#define SMARTMEM_VERSION "(.*)"', HEADER.read_text("utf-8"))
    assert header == re.findall(r"VERSION (\d+\.\d+\.\d+)", (SOURCES / "CMakeLists.txt").read_text("utf-8"))
    assert (installed() / "lib" / f"libsmartmem.so.{header[0].split('.')[0]}").exists()


def test_a_project_of_cmake_finds_it(tmp_path: Path) -> None:
    prefix = installed()
    (tmp_path / "user.cpp").write_text(PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    run(tmp_path / "build" / "user")


def test_pkg_config_finds_it(tmp_path: Path) -> None:
    prefix = installed()
    if shutil.which("pkg-config") is None or shutil.which("c++") is None:
        pytest.skip("there is no pkg-config or no C++ compiler on this computer")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    flags = run("pkg-config", "--cflags", "--libs", "smartmem", env=environment).split()
    (tmp_path / "user.cpp").write_text(PROGRAM)
    warnings = ("-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror")
    run("c++", *warnings, tmp_path / "user.cpp", *flags, f"-Wl,-rpath,{prefix / 'lib'}", "-o", tmp_path / "user")
    run(tmp_path / "user")
