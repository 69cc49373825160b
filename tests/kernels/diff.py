"""Which kernels a change of the compiler changes: `make kernels-diff`.

    python -m tests.kernels.diff                      # all of them, exit status 1 if any differs
    python -m tests.kernels.diff gemm softmax         # those of some models
    python -m tests.kernels.diff --update             # keep what they are now

A change of names alone leaves the digests; the summary tells the two apart.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.kernels.cases import Case, all_cases
from tests.kernels.snapshot import snapshot
from tilewright.core.config import override

GOLDEN = Path(__file__).parents[1] / "golden" / "kernels"
# Lines of difference that are shown of one file.
SHOWN = 60
_DIGEST = re.compile(r"^code \w+$|digest \w+$", re.MULTILINE)


@dataclass(frozen=True)
class Change:
    """A case whose kernels are not the ones kept."""

    case: Case
    kept: str
    now: str

    @property
    def kind(self) -> str:
        """What is different: only names, or the code itself."""
        if not self.kept:
            return "new"
        same = _DIGEST.findall(self.kept) == _DIGEST.findall(self.now)
        return "names" if same else "code"

    def text(self, shown: int = SHOWN) -> str:
        """The difference, cut to a number of lines."""
        lines = list(
            difflib.unified_diff(self.kept.splitlines(), self.now.splitlines(), lineterm="", n=2)
        )[2:]
        more = [f"... {len(lines) - shown} lines more"] if len(lines) > shown else []
        return "\n".join([f"--- {self.case.file} ({self.kind})", *lines[:shown], *more])


def change_of(case: Case) -> Change | None:
    """What is different about a case, if anything is."""
    path = GOLDEN / case.file
    kept = path.read_text() if path.is_file() else ""
    now = snapshot(case)
    return None if now == kept else Change(case, kept, now)


def stale_files() -> list[Path]:
    """Golden files that no case has any more."""
    known = {GOLDEN / case.file for case in all_cases()}
    return sorted(set(GOLDEN.rglob("*.txt")) - known)


def changes(cases: Sequence[Case]) -> Iterator[Change]:
    """The changed cases, found by as many processes as there are cores."""
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        yield from filter(None, pool.map(_verified_change, cases, chunksize=8))


def _verified_change(case: Case) -> Change | None:
    """What is different, every step verified: the tests then trust traces that are as kept."""
    with override(verify=2):
        return change_of(case)


def update(found: Sequence[Change]) -> None:
    """Keep what the kernels are now."""
    for change in found:
        path = GOLDEN / change.case.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(change.now)
    for path in stale_files():
        path.unlink()


def main() -> int:
    """Compare, show, and with `--update` keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="the models to compare; all of them if none")
    parser.add_argument("--update", action="store_true", help="keep what the kernels are now")
    options = parser.parse_args()
    cases = [c for c in all_cases() if not options.models or c.model in options.models]
    found = list(changes(cases))
    for change in found:
        print(change.text(), end="\n\n")
    stale = [] if options.models else stale_files()
    kinds = Counter(change.kind for change in found)
    counts = ", ".join(f"{n} changed in {kind}" for kind, n in sorted(kinds.items()))
    print(f"{len(cases)} cases: {counts or 'none changed'}; {len(stale)} stale files")
    if options.update:
        update(found)
        return 0
    return 1 if found or stale else 0


if __name__ == "__main__":
    sys.exit(main())
