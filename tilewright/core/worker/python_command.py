"""How a worker is started that is a module of this package, with the Python that runs here."""

from __future__ import annotations

import sys
from pathlib import Path

_PACKAGES = Path(__file__).resolve().parents[3]

# It finds packages where its parent does, behind the standard library.
_PROGRAM = "import sys; sys.path += sys.argv[1:]; from {} import main; main()"


def python_command(module: str) -> list[str]:
    """A command that runs `main` of a module."""
    program = _PROGRAM.format(module)
    return [sys.executable, "-I", "-S", "-c", program, str(_PACKAGES), *sys.path]


def can_start_python() -> bool:
    """Whether this process is Python itself, and not a program that Python is a part of."""
    name = Path(sys.executable or "").name
    return name.startswith("python") and not getattr(sys, "frozen", False)
