"""`tilewright cache`: what compiled models are kept, and why one is compiled again.

tilewright cache list
tilewright cache why-miss model.onnx --dim N=8
tilewright cache clear
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tilewright.cli.options import (
    checks_option,
    dims_option,
    disable_pass_option,
    json_option,
    model_argument,
    precision_option,
    target_option,
    tuned_option,
)
from tilewright.cli.output import print_json, print_table, size_text
from tilewright.core.errors import ConfigError

if TYPE_CHECKING:
    from tilewright.core.disk_cache import DiskCache


@click.group("cache")
def cache_command() -> None:
    """Look after the compiled models on disk (TW_CACHE_DIR)."""


@cache_command.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List the compiled models, the last used first."""
    from tilewright.driver.cache_report import kept_compilations

    store = _store()
    rows: list[dict[str, Any]] = [
        {
            "model": parts.model,
            "target": parts.target_name,
            "precision": parts.precision,
            "dims": dict(parts.dims),
            "bytes": path.stat().st_size,
            "used": path.stat().st_mtime,
            "key": path.name,
        }
        for path, parts in kept_compilations(store)
    ]
    files = store.files()
    total = sum(size for _, size in files)
    if as_json:
        print_json({"folder": str(store.root), "files": len(files), "bytes": total, "models": rows})
        return
    print_table(
        ["model", "target", "precision", "sizes", "size", "last used", "key"],
        [
            [
                row["model"],
                row["target"],
                row["precision"],
                ", ".join(f"{name}={size}" for name, size in row["dims"].items()) or "-",
                size_text(row["bytes"]),
                time.strftime("%Y-%m-%d %H:%M", time.localtime(row["used"])),
                row["key"][:12],
            ]
            for row in rows
        ],
    )
    limit = size_text(store.limit)
    click.echo(f"{store.root}: {len(files)} files in all, {size_text(total)} of {limit}")


@cache_command.command("clear")
@json_option
def clear_command(as_json: bool) -> None:
    """Remove everything that can be made again; calibrations stay."""
    store = _store()
    files = store.files()
    store.clear()
    total = sum(size for _, size in files)
    if as_json:
        print_json({"folder": str(store.root), "files": len(files), "bytes": total})
    else:
        click.echo(f"removed {len(files)} files, {size_text(total)}, from {store.root}")


@cache_command.command("why-miss")
@model_argument
@target_option
@precision_option
@dims_option
@disable_pass_option
@checks_option
@tuned_option
@json_option
def why_miss_command(
    model: Path,
    target: str,
    precision: str,
    dims: Mapping[str, int],
    disable_passes: Sequence[str],
    checks: str,
    tuned: Path | None,
    as_json: bool,
) -> None:
    """Say whether MODEL with these options is in the cache, and if not what is different."""
    from tilewright.cli.source import read_source
    from tilewright.driver.cache_report import explain_miss
    from tilewright.driver.options import make_options

    options = make_options(
        target, precision, dims, disable_passes=disable_passes, checks=checks, tuned=tuned
    )
    found = explain_miss(read_source(model), options, _store())
    if as_json:
        print_json(found._asdict())
    else:
        click.echo(f"{model}: {found}")


def _store() -> DiskCache:
    from tilewright.core.disk_cache import open_cache

    store = open_cache()
    if store is None:
        raise ConfigError("cache.off", "the cache is off", help="switch it on: TW_CACHE=on")
    return store
