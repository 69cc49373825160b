"""The calibration of this machine on disk: one file in the user's cache, never evicted.

It holds for the target `native` alone, and only on the machine that it was measured on. As part of
that target it is part of the key of everything that is compiled for it.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from tilewright.core.atomic_write import atomic_write
from tilewright.core.disk_cache import fingerprint, open_cache
from tilewright.core.errors import ConfigError
from tilewright.core.host.core_rates import CoreRates
from tilewright.core.host.identity import machine_identity

_VERSION = "1"  # of what is measured


def read_calibration() -> CoreRates | None:
    """What was measured of this machine, if anything was."""
    path = calibration_path()
    if path is None or not path.is_file():
        return None
    try:
        return CoreRates(**json.loads(path.read_text()))
    except (ValueError, TypeError) as error:
        raise ConfigError(
            "calibration.unreadable",
            f"{path} is no calibration: {error}",
            help="measure again with `tilewright doctor --calibrate`",
        ) from error


def write_calibration(rates: CoreRates) -> Path:
    """Keep what was measured of this machine."""
    path = calibration_path()
    if path is None:
        raise ConfigError(
            "calibration.no-cache",
            "a calibration is kept in the cache, which is off",
            help="switch it on: TW_CACHE=on",
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(asdict(rates), indent=1)
    atomic_write(path, lambda file: file.write_text(text))
    return path


def remove_calibration() -> bool:
    """Go back to the built-in figures; whether there was a calibration."""
    path = calibration_path()
    if path is None or not path.is_file():
        return False
    path.unlink()
    return True


def calibration_path() -> Path | None:
    """The path of this machine's calibration; None without a cache."""
    store = open_cache()
    if store is None:
        return None
    name = fingerprint("calibration", _VERSION, machine_identity() or "unknown")
    return store.root / "calibration" / f"{name}.json"
