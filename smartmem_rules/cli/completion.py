"""`smartmem completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from smartmem_rules.cli.common import reports_errors

_VARIABLE = "_SMARTMEM_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@reports_errors
def command(shell: str) -> None:
    """Print a script that completes commands and options in SHELL.

    bash and zsh: eval "$(smartmem completion bash)" in ~/.bashrc or ~/.zshrc. fish: smartmem completion fish >
    ~/.config/fish/completions/smartmem.fish.
    """
    made = get_completion_class(shell)
    assert made is not None  # click has all three
    root = click.get_current_context().find_root().command
    click.echo(made(root, {}, "smartmem", _VARIABLE).source())
