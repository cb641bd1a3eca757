"""The JNI side of `android/`: built for this computer's JDK, run on its OpenCL device, and cross-compiled for ARM."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smartmem_rules as sm
from examples.serving.model import build
from tests.made_once import made_once
from tests.runtime.c.library import DEFINITIONS, ROOT, SOURCES, opencl_environment, run

MAIN = ROOT / "android" / "smartmem" / "src" / "main"
EXAMPLE = ROOT / "android" / "example" / "src" / "main" / "kotlin" / "dev" / "smartmem" / "example" / "Classifier.kt"
TESTS = Path(__file__).parent
KOTLIN = ROOT / "build" / "android" / "usr" / "share" / "java"
"""Where `make android` puts Debian's Kotlin compiler."""
COMPILER = (
    "kotlin-compiler", "kotlin-stdlib", "kotlin-reflect", "libtrove-intellij", "org.jetbrains.annotations-java8",
)  # fmt: skip
EXPECTED = {
    "run without input": 5, "output without run": 6, "heap buffer": 1, "null buffer": 1, "null name": 1,
    "unknown name": 3, "short buffer": 4, "no shape": 1, "long shape": 4, "negative shape": 4,
    "session never opened": 2, "plan as session": 2, "session of no plan": 2, "no such input": 1, "negative number": 1,
    "count of no plan": 2, "no such file": 7, "null path": 1, "no plan": 8, "no such device": 9, "bad descriptor": 7,
    "negative offset": 4, "short output": 4, "heap output": 1, "unknown output": 3, "plan closed twice": 2,
    "session closed twice": 2, "run after closing": 2,
}  # fmt: skip
"""For each wrong call the number of its status in smartmem.h."""


@pytest.fixture(scope="module")
def jdk() -> Path:
    """The folder of a JDK."""
    compiler = shutil.which("javac")
    if compiler is None or shutil.which("cmake") is None:
        pytest.skip("the Java side is tested where there is a JDK (`javac`) and CMake")
    return Path(compiler).resolve().parent.parent


@pytest.fixture(scope="module")
def built(jdk: Path) -> Path:
    """A folder with the JNI library and the compiled Java classes."""
    environment = {**os.environ, "JAVA_HOME": str(jdk)}
    java = [*sorted((MAIN / "java").rglob("*.java")), TESTS / "TryNative.java"]

    def make(folder: Path) -> None:
        options = ("-DCMAKE_C_FLAGS=-Werror", "-DCMAKE_BUILD_TYPE=Debug")
        run("cmake", "-S", MAIN / "cpp", "-B", folder, *options, env=environment)
        run("cmake", "--build", folder, env=environment)
        run("javac", "-Xlint:all", "-Werror", "--release", "11", "-encoding", "utf-8", "-d", folder / "classes", *java)

    sources = (path for folder in (MAIN / "cpp", SOURCES) for path in folder.rglob("*") if path.is_file())
    return made_once("jni", [*java, *sources, Path(__file__)], make)


@pytest.fixture(scope="module")
def plan() -> sm.OptimizedPlan:
    return sm.optimize(build(), dims={"batch": (1, 4)})


def started(built: Path, classes: str, program: str, *arguments: Path) -> list[str]:
    """The lines that a program prints."""
    command = ["java", f"-Djava.library.path={built}", "-Dfile.encoding=UTF-8", "-cp", classes, program]
    done = subprocess.run(
        [*command, *map(str, arguments)],
        env={**os.environ, **opencl_environment(), "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def given(plan: sm.OptimizedPlan, folder: Path) -> tuple[list[Path], np.ndarray[Any, np.dtype[Any]]]:
    """The arguments of a program, and what it must write to the last of them."""
    plan.save(folder / "a.plan")
    feeds = plan.random_feeds(3, {"batch": 2})
    feeds["image"].tofile(folder / "image.raw")
    return [folder / "a.plan", folder / "image.raw", folder / "label.raw"], plan.run(feeds)["label"]


def statuses(lines: list[str]) -> dict[str, int]:
    found = (re.fullmatch(r"([^:]+): (\d+) (.+)", line) for line in lines)
    return {one[1]: int(one[2]) for one in found if one}


def test_a_run_gives_python_s_bytes_and_wrong_calls_are_exceptions(
    built: Path, plan: sm.OptimizedPlan, tmp_path: Path
) -> None:
    arguments, expected = given(plan, tmp_path)
    said = started(built, str(built / "classes"), "dev.smartmem.TryNative", *arguments)
    assert arguments[-1].read_bytes() == expected.tobytes()
    assert statuses(said) == EXPECTED
    (unknown,) = (line for line in said if line.startswith("unknown name"))
    assert "imäge" in unknown


@pytest.fixture(scope="module")
def kotlin_compiler() -> None:
    if not (KOTLIN / "kotlin-compiler.jar").exists():
        pytest.skip("there is no Kotlin compiler here; `make android` installs one")


@pytest.fixture
def kotlin(kotlin_compiler: None, built: Path, tmp_path: Path) -> list[Path]:
    """The class path of the compiled Kotlin classes."""
    jars = ":".join(str(KOTLIN / f"{name}.jar") for name in COMPILER)
    path = [tmp_path / "kotlin", built / "classes", KOTLIN / "kotlin-stdlib.jar"]
    options = ["-no-stdlib", "-no-reflect", "-Werror", "-jvm-target", "1.8", "-d", path[0]]
    run(
        "java", "--add-opens", "java.base/java.lang=ALL-UNNAMED", "-cp", jars,
        "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler", *options, "-cp", f"{path[1]}:{path[2]}",
        *sorted((MAIN / "kotlin").rglob("*.kt")), EXAMPLE,
    )  # fmt: skip
    joined = ":".join(map(str, path))
    run("javac", "-Xlint:all,-try", "-Werror", "-cp", joined, "-d", path[0], TESTS / "TrySession.java")
    return path


def test_the_kotlin_session(kotlin: list[Path], built: Path, plan: sm.OptimizedPlan, tmp_path: Path) -> None:
    arguments, expected = given(plan, tmp_path)
    said = started(built, ":".join(map(str, kotlin)), "TrySession", *arguments)
    assert said[:3] == ["image 2 [4, 3, 32, 32]", "[2, 10]", "10 20 0"]
    assert statuses(said) == {"missing": 5, "unknown": 3, "short": 4, "closed": 2}
    assert arguments[-1].read_bytes() == expected.tobytes()


def test_each_native_method_is_there_on_arm(jdk: Path, tmp_path: Path) -> None:
    python = ROOT / "build" / "arm" / "venv" / "bin" / "python"
    if not python.exists():
        pytest.skip("there is no cross compiler here; `make arm` installs one")
    parts = [MAIN / "cpp" / "smartmem_jni.c", *(SOURCES / "src").glob("*.c"), *(SOURCES / "nanopb").glob("*.c")]
    includes = [f"-I{SOURCES / name}" for name in ("include", "src", "nanopb")]
    includes += [f"-I{jdk / 'include'}", f"-I{jdk / 'include' / 'linux'}"]
    flags = ("-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-fvisibility=hidden", "-shared", "-s")
    library = tmp_path / "libsmartmem_jni.so"
    cache = {"ZIG_GLOBAL_CACHE_DIR": str(tmp_path), "ZIG_LOCAL_CACHE_DIR": str(tmp_path)}
    target = ("-target", "aarch64-linux-gnu.2.28")
    command = [python, "-m", "ziglang", "cc", *target, *DEFINITIONS, *flags, *includes, "-o", library, *parts]
    run(*command, "-lm", "-ldl", "-lpthread", env={**os.environ, **cache})
    symbols = run("readelf", "--dyn-syms", "-W", library)
    declared = re.findall(r"static native \S+ (\w+)\(", (MAIN / "java/dev/smartmem/Native.java").read_text("utf-8"))
    assert {f"Java_dev_smartmem_Native_{name}" for name in declared} <= set(re.findall(r"(\w+)$", symbols, re.M))
    assert "AArch64" in run("readelf", "-h", library)
