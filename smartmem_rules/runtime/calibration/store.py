"""Where calibrations lie: a file for each device and driver, beside the database of tuned kernels.

`$SMARTMEM_CALIBRATION` names another folder; `off` keeps none and uses none, so that plans are those of the rules;
with `auto` the first `optimize` on a device measures it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path

from smartmem_rules.environment import CALIBRATION
from smartmem_rules.resources import cache_folder
from smartmem_rules.runtime.calibration.record import Calibration, CalibrationError
from smartmem_rules.runtime.devices import Device
from smartmem_rules.whole_files import write_whole

SWITCH = CALIBRATION.name
AUTO = "auto"


def folder() -> Path | None:
    """Where calibrations lie; None where none are used."""
    given = CALIBRATION.value()
    if given and given != AUTO:
        return None if given == "off" else Path(given)
    base = cache_folder()
    return None if base is None else base / "calibrations"


def measures_at_need() -> bool:
    """Whether a device of which nothing is known is measured when a plan is made for it."""
    return CALIBRATION.value() == AUTO and folder() is not None


def path_of(device: Device) -> Path | None:
    """The file of a device with this driver."""
    where = folder()
    text = "\0".join((device.platform, device.name, device.driver, str(device.compute_units), str(device.vector_width)))
    return None if where is None else where / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def known(device: Device) -> Calibration | None:
    """What was measured of a device, None where nothing was.

    Raises:
        CalibrationError: its file is damaged.
    """
    path = path_of(device)
    if path is None:
        return None
    try:
        return Calibration.of_data(json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CalibrationError(
            f"{path}: this is no calibration ({error}); `smartmem calibrate` measures anew, {SWITCH}=off uses none"
        ) from error


def keep(device: Device, calibration: Calibration) -> Path:
    """Write what was measured of a device.

    Raises:
        CalibrationError: calibrations are switched off, or the file cannot be written.
    """
    path = path_of(device)
    if path is None:
        raise CalibrationError(f"calibrations are switched off: {SWITCH} names a folder for them")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, (json.dumps(calibration.data(), indent=1) + "\n").encode())
    except OSError as error:
        raise CalibrationError(f"{path}: the calibration cannot be written ({error.strerror or error})") from error
    return path


def forget(device: Device) -> bool:
    """Whether there was a calibration of a device, which is gone now."""
    path = path_of(device)
    if path is None or not path.exists():
        return False
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    return True
