"""`smartmem lsp`."""

from __future__ import annotations

import click

from smartmem_rules.cli.common import fail


@click.command("lsp")
@click.option("--stdio", is_flag=True, help="Talk over stdin and stdout; the only way, and the default.")
def command(stdio: bool) -> None:
    """Serve an editor over stdin and stdout: messages, hover, definitions, completion, rename, formatting."""
    del stdio
    try:
        from smartmem_rules.lsp.server import server  # start-up time
    except ImportError:
        fail("this needs the package pygls: pip install 'smartmem-rules[lsp]'")
    server.start_io()
