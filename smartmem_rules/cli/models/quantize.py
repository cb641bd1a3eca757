"""`smartmem quantize`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from smartmem_rules.cli.common import (
    console,
    dims_option,
    inputs_option,
    json_option,
    names,
    print_json,
    read_inputs,
    reports_errors,
)


@click.command("quantize")
@click.argument("model", metavar="MODEL", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", required=True, metavar="OUT.onnx", type=click.Path(path_type=Path, dir_okay=False),
    help="Where the model with quantized weights is written.",
)  # fmt: skip
@click.option(
    "--weights",
    type=click.Choice(["int4", "uint4", "int8", "uint8"]),
    default="int4",
    show_default=True,
    help="Integers that weights become; unsigned ones have a zero point for each block.",
)
@click.option(
    "--block",
    type=int,
    default=32,
    show_default=True,
    metavar="N",
    help="Neighbouring weights of a column that share a scale; 0 for whole columns.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["matmulnbits", "qdq"]),
    default="matmulnbits",
    show_default=True,
    help="ONNX Runtime's operators (MatMulNBits), or ONNX's DequantizeLinear in front of the product.",
)
@click.option("--exclude", multiple=True, metavar="NODE", help="The name of a node that stays as it is; repeatable.")
@click.option(
    "--least",
    type=click.IntRange(min=1),
    default=4096,
    show_default=True,
    metavar="N",
    help="Products with fewer weights stay as they are.",
)
@click.option("--no-tables", is_flag=True, help="Tables of which rows are read (embeddings) stay as they are.")
@inputs_option
@dims_option
@click.option("--seed", default=0, show_default=True, help="Of the inputs that are not given.")
@click.option("--no-check", is_flag=True, help="Run neither model: only the errors of weights are known then.")
@json_option
@reports_errors
def command(
    model: Path,
    output: Path,
    weights: str,
    block: int,
    form: str,
    exclude: tuple[str, ...],
    least: int,
    no_tables: bool,
    inputs: dict[str, Path],
    dims: dict[str, int | tuple[int, int]],
    seed: int,
    no_check: bool,
    as_json: bool,
) -> None:
    """Write a model whose products and tables have weights of few bits; all else of it stays as it is.

    ONNX Runtime runs both models on the inputs, random ones where none are given: what each product and each output
    loses is printed, in parts of its own norm.
    """
    from smartmem_rules.quantization.options import Options  # start-up time
    from smartmem_rules.quantization.quantize import Trial, quantize_file  # start-up time

    options = Options(
        weights=weights, block=block, form=form, exclude=names(exclude), least=least, tables=not no_tables
    )
    trial = None if no_check else Trial(given=read_inputs(inputs), dims=dims, seed=seed)
    report = quantize_file(model, output, options, trial)
    data = {"model": str(model), "output": str(output), **report.data()}
    if as_json:
        print_json(data)
    else:
        _print(data)


def _print(data: Mapping[str, Any]) -> None:
    from smartmem_rules.cli.tables import megabytes, number, table  # start-up time

    screen = console()
    per = f"blocks of {data['block']}" if data["block"] else "a scale for each column"
    title = f"{data['model']}: {data['weights']}, {per}, {data['form']}"
    layers = table(title, "product", "weight", "bytes", "to", "weight error", "output error")
    for one in data["layers"]:
        layers.add_row(
            one["node"], f"{one['depth']} x {one['columns']}", str(one["bytes_before"]), str(one["bytes_after"]),
            number(one["weight_error"], ".4f"), number(one["output_error"], ".4f"),
        )  # fmt: skip
    screen.print(layers)
    for node, reason in data["left"].items():
        screen.print(f"{node} stays as it is: {reason}", markup=False)
    if data["outputs"]:
        outputs = table(f"Outputs, by {data['reference']}", "output", "relative error", "largest, of the largest")
        for one in data["outputs"]:
            outputs.add_row(one["output"], number(one["relative"], ".4f"), number(one["largest"], ".4f"))
        screen.print(outputs)
    if data["random_inputs"]:
        screen.print(f"random inputs (seed {data['seed']}): {', '.join(data['random_inputs'])}", markup=False)
    sizes = f"{megabytes(data['bytes_before'])} of weights before, {megabytes(data['bytes_after'])} now"
    screen.print(f"{sizes}; saved as {data['output']}", markup=False)
