"""`smartmem generate`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from smartmem_rules.cli.common import (
    console,
    device_option,
    given_inputs,
    json_option,
    level_option,
    names,
    options_for_any_device,
    print_json,
    progress_display,
    read_inputs,
    reports_errors,
)
from smartmem_rules.records import dataclass

if TYPE_CHECKING:
    from smartmem_rules.decoding.choosing import Sampling
    from smartmem_rules.decoding.generator import Generator
    from smartmem_rules.decoding.report import GenerationReport
    from smartmem_rules.decoding.text import Text


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What to continue, and until when."""

    prompts: list[list[int]]
    tokens: int
    stop: tuple[int, ...]
    text: Text | None


@click.command("generate")
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--prompt-ids", multiple=True, metavar="N,N,...", help="Token numbers of a prompt; repeatable, for a batch."
)
@click.option(
    "--tokenizer", type=click.Path(path_type=Path), metavar="FOLDER", help="With tokenizer.json, for --prompt."
)
@click.option("--prompt", multiple=True, metavar="TEXT", help="A prompt, with --tokenizer; repeatable, for a batch.")
@click.option("--tokens", default=128, show_default=True, metavar="N", help="How many are generated at most.")
@click.option("--temperature", default=0.0, show_default=True, help="Of what is drawn; 0 takes the likeliest token.")
@click.option("--top-k", default=0, show_default=True, metavar="N", help="Draw from the N likeliest; 0 for all.")
@click.option("--top-p", default=1.0, show_default=True, metavar="P", help="Draw from the fewest that sum up to P.")
@click.option("--seed", default=0, show_default=True, help="Of what is drawn.")
@click.option("--stop", multiple=True, type=int, metavar="N", help="A token that ends a sequence; repeatable.")
@click.option("--bound", default=1024, show_default=True, metavar="N", help="Tokens that the cache holds at most.")
@click.option("--block", default=256, show_default=True, metavar="N", help="Tokens by which the cache grows.")
@click.option(
    "--input", "inputs", multiple=True, callback=given_inputs, metavar="NAME=FILE.npy", help="A further input's values."
)
@click.option(
    "--with-past",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The decoder behind the cache, where MODEL is the one for prompts.",
)
@click.option("--cache", type=click.Choice(["model", "int8"]), default="model", show_default=True, help="Its type.")
@level_option
@device_option
@options_for_any_device
@json_option
@reports_errors
def command(
    model: Path,
    prompt_ids: tuple[str, ...],
    tokenizer: Path | None,
    prompt: tuple[str, ...],
    tokens: int,
    temperature: float,
    top_k: int,
    top_p: float,
    seed: int,
    stop: tuple[int, ...],
    bound: int,
    block: int,
    cache: str,
    as_json: bool,
    dims: dict[str, int],
    inputs: dict[str, Path],
    with_past: Path | None,
    **how: Any,
) -> None:
    """Continue prompts with MODEL, a language model that was exported with its cache (past_key_values)."""
    from smartmem_rules.decoding.choosing import Sampling  # start-up time
    from smartmem_rules.decoding.generate import dims_within  # start-up time
    from smartmem_rules.decoding.generator import Generator  # start-up time

    given = read_inputs(inputs)
    asked = _asked(prompt_ids, tokenizer, prompt, tokens, stop)
    how["disable"] = names(how["disable"])
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    with progress_display() as progress:
        extents = dims | dims_within(model, given, with_past) if given else dims
        generator = Generator(model, len(asked.prompts), bound, block, progress, cache, extents, with_past, **how)
        generator.checked(asked.prompts, tokens, sampling, given, asked.stop)  # before plans are made
        generator.prepare(sampling)
    report = _generated(generator, model, asked, sampling, given, shows=not as_json)
    if as_json:
        print_json(report.data())
    else:
        _print(report)


def _asked(
    ids: Sequence[str], tokenizer: Path | None, prompts: Sequence[str], tokens: int, stop: tuple[int, ...]
) -> Asked:
    if bool(ids) == bool(prompts) or bool(prompts) != (tokenizer is not None and not ids):
        raise click.UsageError("give prompts, as numbers (--prompt-ids) or as texts (--tokenizer FOLDER --prompt TEXT)")
    if tokenizer is None:
        return Asked(prompts=[_numbers(one) for one in ids], tokens=tokens, stop=stop, text=None)
    from smartmem_rules.decoding.text import text_of  # start-up time

    text = text_of(tokenizer)
    return Asked(prompts=[text.tokens(one) for one in prompts], tokens=tokens, stop=stop or text.stop, text=text)


def _numbers(text: str) -> list[int]:
    try:
        return [int(number) for number in text.replace(",", " ").split()]
    except ValueError:
        raise click.UsageError(f"--prompt-ids {text!r}: give numbers with commas between them") from None


def _generated(
    generator: Generator, model: Path, asked: Asked, sampling: Sampling, given: dict[str, Any], shows: bool
) -> GenerationReport:
    """Generate, and show a single sequence while it grows."""
    from smartmem_rules.decoding.report import Continuation, GenerationReport, memory_of  # start-up time
    from smartmem_rules.decoding.text import Piecewise  # start-up time

    found: list[list[int]] = [[] for _ in asked.prompts]
    pieces = None if asked.text is None else Piecewise(asked.text)
    moments = [time.perf_counter()]
    for step in generator.stream(asked.prompts, asked.tokens, sampling, asked.stop, given):
        moments.append(time.perf_counter())
        for own, token in zip(found, step, strict=True):
            own.extend([] if token is None else [token])
        if shows and len(found) == 1:
            click.echo(f"{found[0][-1]} " if pieces is None else pieces.more(found[0]), nl=False)
    later = moments[-1] - moments[1]
    count = sum(map(len, found)) - len(found)
    continued = [
        Continuation(
            prompt=prompt,
            tokens=own,
            text=None if asked.text is None else asked.text.text(own),
            ended=own[-1] in asked.stop,
        )
        for prompt, own in zip(asked.prompts, found, strict=True)
    ]
    memory = memory_of(generator)
    return GenerationReport(
        model=str(model), device=generator.plans.device.name, sequences=continued,
        prefill_ms=1e3 * (moments[1] - moments[0]),
        token_ms=1e3 * later / (len(moments) - 2) if later else None,
        tokens_per_s=count / later if later else None,
        memory=memory,
    )  # fmt: skip


def _print(report: GenerationReport) -> None:
    from smartmem_rules.cli.tables import megabytes  # start-up time

    if len(report.sequences) == 1:
        click.echo()
    else:
        for number, one in enumerate(report.sequences):
            click.echo(f"{number}: {' '.join(map(str, one.tokens)) if one.text is None else one.text}")
    screen, memory = console(), report.memory
    speed = "" if report.tokens_per_s is None else f", then {report.tokens_per_s:.1f} tokens a second"
    screen.print(f"{report.device}: first token after {report.prefill_ms:.0f} ms{speed}", markup=False)
    screen.print(
        f"{megabytes(memory.weights)} of weights, {megabytes(memory.intermediates)} of intermediates, cache "
        f"{megabytes(memory.cache)} ({memory.cache_per_token} bytes a token, at most {memory.bound} tokens)",
        markup=False,
    )
