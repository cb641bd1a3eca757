"""Files of certificates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from smartmem_rules.errors import SmartmemError
from smartmem_rules.whole_files import write_whole

FORMAT = "smartmem certificate"


class CertificateFileError(SmartmemError):
    """A file is no certificate or cannot be written; the message says which and why."""


def read_certificate(path: str | Path) -> Mapping[str, Any]:
    """The certificate in a file.

    Raises:
        CertificateFileError: there is no such file, or it holds something else.
    """
    try:
        data = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise CertificateFileError(f"{path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise CertificateFileError(f"{path}: this is no certificate, or it is damaged ({error})") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise CertificateFileError(
            f"{path}: this is no certificate; `smartmem optimize MODEL --certificate FILE` writes one"
        )
    return data


def write_certificate(text: str, path: str | Path) -> None:
    """Write a certificate; nothing is left behind where that fails.

    Raises:
        CertificateFileError: the file cannot be written.
    """
    try:
        write_whole(Path(path), text.encode())
    except OSError as error:
        raise CertificateFileError(f"{path}: the certificate cannot be written ({error.strerror or error})") from error
