"""The roofline of this machine: measured once, in about 2 s, then kept on disk."""

from __future__ import annotations

import json
from collections.abc import Callable

from tilewright.core.disk_cache import fingerprint, open_cache
from tilewright.core.host.identity import machine_identity
from tilewright.runtime.roofline.measure import measure_roofline
from tilewright.runtime.roofline.roofline import Roofline

_VERSION = "2"  # of what is measured


def machine_roofline(
    threads: int,
    *,
    again: bool = False,
    show: Callable[[str], None] = lambda what: None,
) -> Roofline:
    """The roofline of this machine, measured where it is not known yet or `again`."""
    known = known_roofline(threads)
    if known is not None and not again:
        return known
    show(f"measuring what this machine can do on {threads} threads, about 2 s")
    found = measure_roofline(threads).better(known)
    store = open_cache()
    if store is not None:
        store.keep(_key(threads), lambda file: file.write_text(json.dumps(found.data())))
    return found


def known_roofline(threads: int) -> Roofline | None:
    """The roofline of this machine, if it was measured."""
    store = open_cache()
    path = store.get(_key(threads)) if store is not None else None
    return None if path is None else Roofline.from_data(json.loads(path.read_text()))


def _key(threads: int) -> str:
    return fingerprint("roofline", _VERSION, machine_identity() or "unknown", str(threads))
