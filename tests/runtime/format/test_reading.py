"""An index with right digests and wrong numbers gives a plan or an error, never anything else."""

from __future__ import annotations

import hashlib
import random
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from smartmem_rules import load, optimize
from smartmem_rules.plan.artefact import Provenance
from smartmem_rules.runtime.format import plan_pb2 as pb
from smartmem_rules.runtime.format.provenance import provenance_of
from smartmem_rules.runtime.plan_file import PlanFileError, load_plan, save_plan
from tests.plan.open_models import perceptron
from tests.runtime.format.files import Change, index_of, numbers, resealed
from tests.runtime.plans import make_plan

WRONG = (0, 1, 2, 7, 127, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1, -1, -(2**31), -(2**63))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save_plan(make_plan(), tmp_path / "a.plan")
    return tmp_path / "a.plan"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda index: index.launches[0].arguments.append(pb.Argument(tensor=9)), "there is no tensor 9"),
        (lambda index: index.inputs.append(7), "there is no tensor 7"),
        (lambda index: setattr(index.launches[1], "text", 2), "there is no text 2"),
        (lambda index: index.launches[0].dimensions.append(0), "there is no dimension 0"),
        (lambda index: index.tensors[2].shape.append(-1), "there is no formula 0"),
        (lambda index: setattr(index.tensors[2].place, "slot", 5), "there is no slot 5"),
        (lambda index: setattr(index.tensors[0], "element", 99), "Element has no value 99"),
        (lambda index: index.tensors[0].ClearField("role"), "Role has no value 0"),
        (lambda index: setattr(index.tensors[0], "name", "y"), "two tensors have one name"),
        (lambda index: setattr(index.tensors[1].packed.section, "offset", 2**40), "outside of the file"),
        (lambda index: setattr(index.tensors[1].packed.section, "sum", 1), "checksum"),
        (lambda index: index.tensors[1].packed.shape.append(2), "reshape"),
        (lambda index: index.launches.pop(), "longer"),
        (lambda index: index.formulas.append(pb.Formula(terms=[_quotient(-1)])), "there is no formula 0"),
        (lambda index: index.formulas.append(pb.Formula(terms=[_quotient(1, 0)])), "divides by zero"),
        (lambda index: index.dimensions.append(pb.Dimension(name="n", low=2, high=1)), "no range"),
        (lambda index: setattr(index.slots[0], "bytes", 1), "does not fit its piece of memory"),
        (lambda index: setattr(index.tensors[2].place, "offset", 2**40), "does not fit its piece of memory"),
    ],
)
def test_what_an_index_may_not_say(path: Path, change: Change, message: str) -> None:
    path.write_bytes(resealed(path.read_bytes(), change))
    with pytest.raises(PlanFileError, match=message):
        load_plan(path)


def _quotient(dividend: int, divisor: int = 2) -> pb.Term:
    return pb.Term(coefficient=1, factors=[pb.Factor(dividend=dividend, divisor=divisor)])


def test_wrong_numbers(path: Path, all_cases: bool) -> None:
    whole = path.read_bytes()
    count = len(list(numbers(index_of(whole))))
    for seed in range(5000 if all_cases else 300):
        draw = random.Random(seed)
        index = index_of(whole)
        message, field, place = list(numbers(index))[draw.randrange(count)]
        value = draw.choice(WRONG)
        try:
            if place is None:
                setattr(message, field, value)
            else:
                getattr(message, field)[place] = value
        except (ValueError, TypeError, OverflowError):
            continue  # the field does not take the number
        path.write_bytes(resealed(whole, lambda made, found=index: made.CopyFrom(found)))
        with suppress(PlanFileError):
            load_plan(path)


def test_what_the_plan_was_made_from_comes_back(tmp_path: Path) -> None:
    plan = replace(make_plan(), provenance=Provenance(version="1.2", model=b"m" * 32, rules=b"r" * 32))
    save_plan(plan, tmp_path / "a.plan")
    assert load_plan(tmp_path / "a.plan").provenance == plan.provenance


def test_what_a_plan_is_made_from(tmp_path: Path) -> None:
    model = tmp_path / "a.onnx"
    model.write_bytes(perceptron().SerializeToString())
    optimize(model, dims={"batch": 1}).save(tmp_path / "a.plan")
    made = load_plan(tmp_path / "a.plan").provenance
    assert made == provenance_of(model, ())
    assert made.model == hashlib.sha256(model.read_bytes()).digest()
    assert len(made.rules) == 32
    load(tmp_path / "a.plan").save(tmp_path / "b.plan")
    assert (tmp_path / "a.plan").read_bytes() == (tmp_path / "b.plan").read_bytes()
