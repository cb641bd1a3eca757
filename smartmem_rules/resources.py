"""Where the data folders of the rule engine are: the grammar, the built-in rules and the kernel templates."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def grammar_path() -> Path:
    """The lark grammar of the rule language; raises FileNotFoundError when the installation lacks it."""
    return _folder("grammar") / "smr.lark"


def rules_path() -> Path:
    """The folder of the built-in `.smr` files; raises FileNotFoundError when the installation lacks it."""
    return _folder("rules")


def templates_path() -> Path:
    """The folder of the kernel templates; raises FileNotFoundError when the installation lacks it."""
    return _folder("codegen")


def models_path() -> Path:
    """The folder of the models that come with the project; raises FileNotFoundError when the installation lacks it."""
    for folder in (_PACKAGE / "models", _PACKAGE.parent / "examples" / "models"):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"the folder 'models' is neither in {_PACKAGE} nor in {_PACKAGE.parent / 'examples'}")


def _folder(name: str) -> Path:
    # An installed package carries the folders inside itself; a checkout has them beside the package.
    for parent in (_PACKAGE, _PACKAGE.parent):
        folder = parent / name
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"the folder '{name}' is neither in {_PACKAGE} nor in {_PACKAGE.parent}")
