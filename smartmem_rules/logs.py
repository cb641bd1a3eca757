"""Python's logging, under the name `smartmem_rules`: silent unless the program that uses the library asks for it."""

from __future__ import annotations

import logging

NAME = "smartmem_rules"
logging.getLogger(NAME).addHandler(logging.NullHandler())


def logger(module: str) -> logging.Logger:
    """The logger of a module, by its `__name__`."""
    return logging.getLogger(module)
