"""Text to token numbers and back, by the files of a tokenizer (extra `tokenizers`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from smartmem_rules.decoding.errors import GenerateError
from smartmem_rules.records import dataclass

FILE = "tokenizer.json"
CONFIGS = ("generation_config.json", "config.json")
"""Which say what token ends a text, the first that does."""
_HALF = "\N{REPLACEMENT CHARACTER}"
"""What decoding gives for bytes that are no whole character yet."""


@dataclass(frozen=True, kw_only=True)
class Text:
    """A tokenizer.

    Attributes:
        stop: the tokens that end a text, as far as the files say.
    """

    tokenizer: Any
    stop: tuple[int, ...]

    def tokens(self, text: str) -> list[int]:
        """The token numbers of a text, with those that the tokenizer puts around it."""
        return list(self.tokenizer.encode(text).ids)

    def text(self, tokens: Sequence[int]) -> str:
        """The text of token numbers, without those that stand for no text."""
        return str(self.tokenizer.decode([token for token in tokens if token not in self.stop]))


@dataclass
class Piecewise:
    """The text of tokens that come one after the other."""

    text: Text
    shown: str = ""

    def more(self, tokens: Sequence[int]) -> str:
        """What the text has become longer by; whole characters only.

        Args:
            tokens: all of them so far.
        """
        whole = self.text.text(tokens)
        if whole.endswith(_HALF) or not whole.startswith(self.shown):
            return ""
        piece, self.shown = whole[len(self.shown) :], whole
        return piece


def text_of(folder: Path) -> Text:
    """The tokenizer of a folder, as transformers' `save_pretrained` writes it: `tokenizer.json` and configurations.

    Raises:
        GenerateError: the package `tokenizers` is not installed, or the folder has no tokenizer.
    """
    path = folder / FILE if folder.is_dir() else folder
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise GenerateError(
            "texts need the package tokenizers, which is not installed: pip install 'smartmem-rules[tokenizers]', or "
            "give token numbers (--prompt-ids)"
        ) from None
    if not path.is_file():
        raise GenerateError(f"{path}: there is no such file; give the folder with the model's {FILE}")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the package raises Exception itself
        raise GenerateError(f"{path}: this is no tokenizer, or it is damaged ({error})") from error
    return Text(tokenizer=tokenizer, stop=_stop(path.parent))


def _stop(folder: Path) -> tuple[int, ...]:
    for name in CONFIGS:
        try:
            found = json.loads((folder / name).read_text("utf-8")).get("eos_token_id")
        except (OSError, ValueError, AttributeError):
            continue
        listed = found if isinstance(found, list) else [found]
        if listed and all(isinstance(token, int) for token in listed):
            return tuple(listed)
    return ()
