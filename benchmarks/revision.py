"""The commit that figures are measured at."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Names the commit of a copy of the files that is no repository.
COPY_OF = "BENCH_COMMIT"


def commit() -> str:
    """Its hash, marked where files differ from it; empty where nothing tells."""
    command = ["git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or os.environ.get(COPY_OF, "")
