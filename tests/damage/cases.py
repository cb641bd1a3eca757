"""One damaged input: drawn from its number, given to the library, judged.

An input may be refused with a SmartmemError or accepted; any other exception is a bug, and so is a kernel that does not
compile: whoever wrote the input did not write the kernel.
"""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import smartmem_rules
from smartmem_rules.errors import SmartmemError
from smartmem_rules.language.diagnostics import LanguageError
from smartmem_rules.planned import plan_only
from smartmem_rules.resources import rules_path
from smartmem_rules.rulebase.base import load_modules
from smartmem_rules.rulebase.checks.checker import check
from smartmem_rules.runtime.programs.compiling import BuildError
from tests.damage.data import damaged_bytes, damaged_text
from tests.damage.messages import damaged_model
from tests.damage.numbers import block_with_another_number, mixed_model
from tests.damage.seeds import few_models, language_models, models
from tests.damage.trees import built_in, damaged_rules

PROFILES = ("pocl", "adreno_740", "nvidia")
DEVICE = "auto"


@dataclass(frozen=True)
class Verdict:
    """What became of a damaged input.

    Attributes:
        outcome: `accepted`, `refused` or `bug`.
        text: the message, or the traceback.
    """

    outcome: str
    text: str


def judge(kind: str, number: int, folder: Path, few: bool = False) -> Verdict:
    """Give one damaged input to the library.

    Args:
        kind: a key of `KINDS`.
        number: which one is drawn.
        folder: where files may be written.
        few: draw from the models only that are quick to make.
    """
    draw = random.Random(f"{kind}/{number}")
    corpus = few_models() if few else models()
    name, data = corpus[draw.randrange(len(corpus))]
    try:
        KINDS[kind](data, corpus[draw.randrange(len(corpus))][1], draw, folder)
    except BuildError:
        return Verdict("bug", f"{name}: {traceback.format_exc()}")
    except SmartmemError as error:
        return Verdict("refused", f"{name}: {type(error).__name__}: {error}")
    except Exception:  # what is looked for
        return Verdict("bug", f"{name}: {traceback.format_exc()}")
    return Verdict("accepted", name)


def _optimize(source: Path | bytes | object, draw: random.Random) -> None:
    device = DEVICE if draw.randrange(3) == 0 else draw.choice(PROFILES)
    level = draw.choice(("smartmem", "smartmem", "none", "eliminate"))
    dtype = draw.choice(("float32", "float32", "float16"))
    plan = smartmem_rules.optimize(source, device=device, level=level, dtype=dtype)  # type: ignore[arg-type]
    if plan.device is not None:
        plan.run(plan.random_feeds())


def _model_bytes(data: bytes, other: bytes, draw: random.Random, folder: Path) -> None:
    changed = damaged_bytes(data, other, draw)
    if draw.randrange(2):
        _optimize(changed, draw)
    else:
        path = folder / "damaged.onnx"
        path.write_bytes(changed)
        _optimize(path, draw)


def _model_fields(data: bytes, other: bytes, draw: random.Random, folder: Path) -> None:
    model = damaged_model(data, other, draw)
    if draw.randrange(2):
        _optimize(model, draw)
    else:
        path = folder / "damaged.onnx"
        path.write_bytes(model.SerializeToString())
        _optimize(path, draw)


def _language_models(data: bytes, other: bytes, draw: random.Random, folder: Path) -> None:
    """Tokens of a damaged model with a cache; a prompt that is refused changes nothing of what the next one gives."""
    del data, other, folder
    corpus = language_models()
    model = damaged_model(draw.choice(corpus), draw.choice(corpus), draw)
    generator = smartmem_rules.Generator(model, bound=48, block=16, cache=draw.choice(("model", "int8")))
    found = generator.generate([5, 7, 11], 3)
    try:
        generator.generate(draw.choice(([], [1] * 48, [10**9], [-1])), 3)
    except SmartmemError:
        assert generator.generate([5, 7, 11], 3) == found
    else:
        assert generator.plans.facts.vocabulary is None, "a prompt that cannot be was taken"


@cache
def _plan_file(folder: Path, number: int) -> tuple[Path, bytes]:
    path = folder / f"whole{number}.plan"
    for _, data in few_models()[number:]:
        try:
            smartmem_rules.optimize(data, device=DEVICE).save(path)
        except SmartmemError:
            continue
        return path, path.read_bytes()
    raise AssertionError("no model of the corpus can be optimized")


def _plan(data: bytes, other: bytes, draw: random.Random, folder: Path) -> None:
    del data, other
    places = (0, 3, 8)
    _, whole = _plan_file(folder, draw.choice(places))
    _, second = _plan_file(folder, draw.choice(places))
    path = folder / "damaged.plan"
    path.write_bytes(damaged_bytes(whole, second, draw))
    plan = smartmem_rules.load(path)
    plan.run(plan.random_feeds())


@cache
def _rule_texts() -> tuple[str, ...]:
    folder = Path(__file__).parents[1] / "corpus" / "pass"
    return (*(file.read_text("utf-8") for file in sorted(folder.glob("*.smr"))), *_shipped_texts())


@cache
def _shipped_texts() -> tuple[str, ...]:
    return tuple(file.read_text("utf-8") for file in sorted(rules_path().rglob("*.smr")))


def _rules(data: bytes, other: bytes, draw: random.Random, folder: Path) -> None:
    del other
    texts = _rule_texts()
    own = [text for text in texts if text not in _shipped_texts()]  # what is shipped cannot be defined once more
    text, donor = draw.choice(own if draw.randrange(4) else texts), draw.choice(texts)
    path = folder / "damaged.smr"
    if draw.randrange(3):
        changed = damaged_text(text, donor, draw).encode("utf-8", "surrogatepass")
    else:
        changed = damaged_bytes(text.encode(), donor.encode(), draw)
    path.write_bytes(changed)
    plan = smartmem_rules.optimize(data, rules=[path], device=draw.choice(PROFILES))
    del plan


def _rule_trees(data: bytes, other: bytes, draw: random.Random, folder: Path) -> None:
    """What `smartmem check` says of a file that mostly follows the grammar; what its rules would do is not tried."""
    del data, other
    path = folder / "damaged_tree.smr"
    path.write_text(damaged_rules(draw))
    modules = load_modules([path], {Path(module.span.file).resolve() for module in built_in()})
    files = {module.span.file for module in modules}
    found = check([*built_in(), *modules], deep=files, only=files)
    errors = [one for one in found if one.severity == "error"]
    if errors:
        raise LanguageError(errors, {module.span.file: module.text for module in modules})


def _block_numbers(data: bytes, other: bytes, draw: random.Random, folder: Path) -> None:
    """A plan by a block of which one number is another one: what cannot be planned with it is refused."""
    del data, other
    text, options = block_with_another_number(draw)
    path = folder / "drawn_block.smr"
    path.write_text(text)
    plan_only(mixed_model(), rules=[path], **options)


def _arrays(data: bytes, other: bytes, draw: random.Random, folder: Path) -> None:
    from smartmem_rules.cli.common import read_inputs

    del data, other
    path = folder / "damaged.npy"
    np.save(path, np.arange(6, dtype=draw.choice(("float32", "int64"))).reshape(2, 3))
    path.write_bytes(damaged_bytes(path.read_bytes(), b"(" * 100, draw))
    read_inputs({"x": path})


def _tunings(data: bytes, other: bytes, draw: random.Random, folder: Path) -> None:
    from smartmem_rules.tuning.database import Place, Tuned, Tunings, export, read

    del data, other
    place = Place("device", "1", "pocl")
    made = [
        Tuned(kernel=f"kernel{number}", label="label", choice={"columns": number}, default_ms=2.0, best_ms=1.0)
        for number in range(20)
    ]
    path = folder / "tunings"
    path.unlink(missing_ok=True)
    if draw.randrange(2):
        database = Tunings(path)
        for one in made:
            database.record(place, one)
        path.write_bytes(damaged_bytes(path.read_bytes(), b"", draw))
        database.choices(place)
    else:
        export(place, made, path)
        path.write_bytes(damaged_bytes(path.read_bytes(), b"", draw))
        read(path)


KINDS: dict[str, Callable[[bytes, bytes, random.Random, Path], None]] = {
    "model_bytes": _model_bytes,
    "model_fields": _model_fields,
    "language_models": _language_models,
    "plan": _plan,
    "rules": _rules,
    "rule_trees": _rule_trees,
    "block_numbers": _block_numbers,
    "arrays": _arrays,
    "tunings": _tunings,
}
