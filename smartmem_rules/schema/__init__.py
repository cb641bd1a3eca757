"""JSON Schema of what the commands print with `--json`."""
