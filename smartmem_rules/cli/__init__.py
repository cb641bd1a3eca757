"""The command line: `smartmem COMMAND ...`."""

from __future__ import annotations

import importlib

import click

_COMMANDS = {
    "optimize": ("models.optimize", "Make a plan of a model and say what became of its operators."),
    "simplify": ("models.simplify", "Write a model with fewer nodes, by verified rules, as ONNX."),
    "quantize": ("models.quantize", "Write a model whose products have weights of few bits, and say what that loses."),
    "generate": ("models.generate", "Continue prompts with a language model that was exported with its cache."),
    "run": ("models.run", "Run a model or a plan."),
    "export": ("models.export", "Write a program in C that runs a model without Python."),
    "doctor": ("models.doctor", "Find kernels that a device computes wrongly, and write programs in C that show them."),
    "bench": ("models.bench", "Measure models, beside each other and beside other systems."),
    "simulate": (
        "models.simulate",
        "Follow a model's memory accesses through a model of a device that need not be here.",
    ),
    "tune": ("models.tune", "Find the fastest sizes of a model's kernels by measuring them."),
    "calibrate": ("models.calibrate", "Measure this computer's CPU for the cost model."),
    "show": ("models.show", "List the launches of a plan, or print one kernel with its schedule and OpenCL C."),
    "diff": ("models.diff", "Show what differs between two plans, stage by stage."),
    "explain": ("models.explain", "Say which kernel an ONNX node ended in, and through which rules."),
    "report": ("models.report", "Write one HTML page that explains a plan, and compares it with others."),
    "certify": ("models.certify", "Replay the certificate of a plan, without the optimizer."),
    "check": ("rules.check", "Check rule files."),
    "verify": ("rules.verify", "Test and prove rules, or show where they are wrong."),
    "fuzz": ("rules.fuzz", "Find what engines compute wrongly, with models that rules make equal."),
    "discover": ("rules.discover", "Find rewrites over given operators and print them as rules."),
    "fmt": ("rules.fmt", "Lay out rule files."),
    "docs": ("rules.docs", "Write the reference of all rules, operators, tables and devices as HTML."),
    "lsp": ("rules.lsp", "Serve an editor: messages, hover, definitions, completion."),
    "zoo": ("models.zoo", "List the models that come with the project, or write them."),
    "devices": ("devices", "List the OpenCL devices with their limits."),
    "config": ("config", "List the variables of the environment, and where things are kept."),
    "schema": ("schema", "Print the JSON Schema of what the commands print with --json."),
    "completion": ("completion", "Print a script that completes commands in bash, zsh or fish."),
}
"""The module of each command, and what it does."""


class _Lazy(click.Group):
    """Imports a command's module only when it is called."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module, _ = _COMMANDS[name]
        from smartmem_rules.cli.verbosity import with_verbosity  # start-up time

        return with_verbosity(importlib.import_module(f"smartmem_rules.cli.{module}").command)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in _COMMANDS.items()])


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="smartmem-rules", prog_name="smartmem")
def main() -> None:
    """ONNX models to few, fast OpenCL kernels, by rules that you can read and extend.

    Exit codes: 0 good, 1 the answer is no (outputs differ), 2 bad input, 70 a bug of this program.
    """
