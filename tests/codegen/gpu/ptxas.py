"""Kernels through NVIDIA's assembler: what it says of registers, spills and shared memory."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Report:
    """What one kernel takes."""

    registers: int
    spilled: int
    stack: int
    shared: int


def assemble(ptx: str, folder: Path, arch: str = "sm_90a") -> dict[str, Report]:
    """The report of every kernel in a text; assembling must succeed."""
    source = folder / "kernel.ptx"
    source.write_text(ptx)
    command = ["ptxas", "-v", f"-arch={arch}", str(source), "-o", str(folder / "kernel.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "serialized" not in done.stderr, "wgmma waits for registers"
    found = {}
    for part in done.stderr.split("Compiling entry function")[1:]:
        name = part.split("'")[1]
        found[name] = Report(
            _number(r"Used (\d+) registers", part),
            _number(r"(\d+) bytes spill stores", part) + _number(r"(\d+) bytes spill loads", part),
            _number(r"(\d+) bytes stack frame", part),
            _number(r"(\d+) bytes smem", part),
        )
    return found


def ptxas_version() -> str:
    """The version of the assembler, as `13.0`."""
    told = subprocess.run(["ptxas", "--version"], capture_output=True, text=True, check=True)
    match = re.search(r"release (\S+),", told.stdout)
    assert match is not None
    return match[1]


def _number(pattern: str, text: str) -> int:
    match = re.search(pattern, text)
    return int(match[1]) if match else 0
