"""From what a plan was made: digests of the model and of the rule files."""

from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from smartmem_rules.plan.artefact import Provenance
from smartmem_rules.resources import rules_path


def provenance_of(model: Any, rules: Iterable[str | Path]) -> Provenance:
    """What a plan's file says of its making.

    Args:
        model: a path, bytes or a ModelProto; None where there is no ONNX model.
        rules: the rule files beside the built-in ones.

    Returns:
        what is known; the digest of files that are gone since is empty.
    """
    files = (*sorted(rules_path().rglob("*.smr")), *map(Path, rules))
    return Provenance(version=package_version(), model=_model_digest(model), rules=_files_digest(files))


@cache
def package_version() -> str:
    """The version of this package; `unknown` where it runs without being installed."""
    try:
        return importlib.metadata.version("smartmem-rules")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _model_digest(model: Any) -> bytes:
    if model is None:
        return b""
    if isinstance(model, (str, Path)):
        return _files_digest([Path(model)])
    data = model if isinstance(model, bytes) else model.SerializeToString(deterministic=True)
    return hashlib.sha256(data).digest()


def _files_digest(files: Iterable[Path]) -> bytes:
    digest = hashlib.sha256()
    try:
        for path in files:
            digest.update(path.read_bytes())
    except OSError:
        return b""
    return digest.digest()
