"""The commit that figures are measured at."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def commit() -> str:
    """Its hash, marked where files differ from it; empty outside of a repository."""
    command = ["git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def sentence(commit: str | None) -> str:
    """What a page says of the commit of its figures."""
    return f"Commit {commit}." if commit else "The commit was not recorded."
