"""What machine this is, in a text that is the same as long as the machine is."""

from __future__ import annotations

import os
from pathlib import Path

from tilewright.core.host.cache_sizes import cache_sizes

# What Linux tells of a processor that does not change from moment to moment.
_LASTING = frozenset(
    {
        *("vendor_id", "cpu family", "model", "model name", "stepping", "flags"),
        *("Features", "CPU implementer", "CPU architecture", "CPU variant", "CPU part"),
        "CPU revision",
    }
)


def machine_identity(cpuinfo: Path = Path("/proc/cpuinfo")) -> str | None:
    """The processor's make and abilities, and its caches; None where the system does not tell."""
    try:
        first = cpuinfo.read_text().partition("\n\n")[0]
    except OSError:
        return None
    pairs = (line.partition(":") for line in first.splitlines())
    told = [
        f"{name.strip()}: {value.strip()}" for name, _, value in pairs if name.strip() in _LASTING
    ]
    return "\n".join([os.uname().machine, *told, str(sorted(cache_sizes().items()))])
