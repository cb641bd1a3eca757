"""Arguments of other kinds than public functions take are refused before anything is done, all in one message."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smartmem_rules as sm
from smartmem_rules.errors import SmartmemError
from tests.cli import onnx_files

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"dtype": np.float16}, r"dtype is <class 'numpy.float16'>; give the name of a type, as text"),
    ({"device": None}, r"device is None; give the name of a device or of a profile"),
    ({"rules": "mine.smr"}, r"rules is 'mine.smr'; give a list of files"),
    ({"disable": None}, r"disable is None; give a list of names"),
    ({"dims": [1]}, r"dims is \[1\]; give the extents by the names of dimensions"),
    ({"limits": 3}, r"limits is 3; give a Limits"),
    ({"level": 1, "memory": 2}, r"level is 1; .*\nmemory is 2"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_wrong_types_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        sm.optimize(b"no model is read", **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sm.simplify(5), "^model is 5; give a path, the bytes of an ONNX file, or a ModelProto$"),  # type: ignore[arg-type]
        (lambda: sm.load(5), "^path is 5; give a path, as str or Path, or a list of files$"),  # type: ignore[arg-type]
        (lambda: sm.verify(budget="1s"), "^budget is '1s'; give a number of seconds above 0$"),  # type: ignore[arg-type]
        (lambda: sm.quantize(b"", block=2.5), "^block is 2.5; give a whole number$"),  # type: ignore[arg-type]
    ],
)
def test_the_message_says_what_is_expected(call: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


def test_numbers_outside_their_range_are_named() -> None:
    with pytest.raises(ValueError, match=r"^trials is 0; give a whole number from 1 on\njobs is -1; give"):
        sm.verify(trials=0, jobs=-1)


def test_long_values_are_shortened() -> None:
    with pytest.raises(TypeError) as refused:
        sm.simplify(list(range(100_000)))  # type: ignore[arg-type]
    assert len(str(refused.value)) < 200


@dataclass(frozen=True)
class Public:
    """A function with arguments that it takes."""

    called: Callable[..., Any]
    good: Mapping[str, Any]


FUNCTIONS = (
    "load", "optimize", "simplify", "quantize", "generate", "verify", "Generator", "SpecializedModel",
    "prepare", "run", "pinned", "benchmark", "profile", "random_feeds", "check", "explain", "report", "save",
    "certify", "explain_model", "explain_pair", "explain_rule_on",
)  # fmt: skip
UNCHECKED = {"Sampling": "checked when it is used", "SmartmemError": "an exception", "__version__": "no function"}
UNCHECKED["OptimizedPlan"] = "made by the functions that give it"


def test_every_public_function_is_asked() -> None:
    assert {*sm.__all__} <= {*FUNCTIONS, *UNCHECKED}
    methods = {name for name, value in vars(sm.OptimizedPlan).items() if inspect.isfunction(value) and name[0] != "_"}
    # without arguments, for other modules, or as `check`
    assert methods - {*FUNCTIONS} == {"report_data", "subject", "check_or_reason"}


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Public]:
    """The public functions; those of plans are of a small one."""
    from smartmem_rules import api

    folder = tmp_path_factory.mktemp("arguments")
    model = onnx_files.chain(folder / "chain.onnx")
    certificate = folder / "chain.certificate"
    plan = sm.optimize(model, device="pocl", certificate=certificate)
    plan.save(folder / "chain.plan")
    feeds = {"feeds": plan.random_feeds()}
    good: dict[str, dict[str, Any]] = {
        "load": {"path": folder / "chain.plan", "device": "pocl"},
        "optimize": {"graph": model, "device": "pocl"},
        "simplify": {"model": model},
        "quantize": {"model": model},
        "generate": {"model": model, "prompts": [[1]]},
        "verify": {"rule": "add_constants", "trials": 1, "jobs": 1},
        "Generator": {"model": model},
        "SpecializedModel": {"model": model},
        "certify": {"graph": model, "certificate": certificate},
        "explain_model": {"graph": model, "node": ""},
        "explain_pair": {"graph": model, "first": "", "second": ""},
        "explain_rule_on": {"graph": model, "rule": "add_constants"},
        "prepare": {}, "run": feeds, "pinned": feeds, "profile": feeds, "benchmark": {"runs": 1, "warmup": 0, **feeds},
        "random_feeds": {}, "check": {}, "explain": {"node": ""}, "save": {"path": folder / "again.plan"},
        "report": {"path": folder / "report.html", "measures": False},
    }  # fmt: skip

    def found(name: str) -> Callable[..., Any]:
        owner = next(one for one in (sm.OptimizedPlan, sm, api) if hasattr(one, name))
        function: Callable[..., Any] = getattr(plan if owner is sm.OptimizedPlan else owner, name)
        return function

    return {name: Public(found(name), good[name]) for name in FUNCTIONS}


def values(folder: Path) -> Iterator[Any]:
    """What somebody might give by mistake."""
    yield from (None, 5, -1, 2.5, True, "missing", "", b"bytes", [], [5], ["x"], {}, {"x": 5}, {5: 5})
    yield from (folder, folder / "missing", str(folder), object(), np.float16, np.zeros(2))


def raised_by(called: Callable[..., Any], arguments: Mapping[str, Any]) -> Exception | None:
    """The exception that a call ends with."""
    try:
        called(**arguments)
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_argument_of_another_kind_fails_inside(
    name: str, public: Mapping[str, Public], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is given: it is taken, or one error names the argument or comes as `SmartmemError`."""
    monkeypatch.chdir(tmp_path)  # for files that are written where a name is taken
    function = public[name]
    refused = 0
    for parameter in inspect.signature(function.called).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        for value in values(tmp_path):
            if value is parameter.default:
                continue  # as elsewhere; `verify` would go through all rules
            error = raised_by(function.called, {**function.good, parameter.name: value})
            if isinstance(error, TypeError | ValueError):
                refused += 1
                assert str(error).startswith(parameter.name), (parameter.name, value, error)
            elif error is not None:
                assert isinstance(error, SmartmemError), (parameter.name, value, error)
    assert refused >= 3  # of the twenty values, each parameter takes few


def test_options_of_further_names_are_looked_at(public: Mapping[str, Public]) -> None:
    for name in ("generate", "Generator", "explain_model", "explain_pair", "explain_rule_on"):
        with pytest.raises(TypeError, match=r"^level is 5; give the name of a level, as text$"):
            public[name].called(**public[name].good, level=5)
