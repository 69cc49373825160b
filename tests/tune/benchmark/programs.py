"""Tabular spaces of programs for tests of the benchmark: products, timed by a formula."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np

from tests.schedule.programs import matmul
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget
from tilewright.target.registry import CPUS
from tilewright.tune.benchmark.record_space import record
from tilewright.tune.candidate import Candidate, Result
from tilewright.tune.features.program import ESTIMATE, feature_names, program_features
from tilewright.tune.space.space import Choose, Illegal, Site, Space
from tilewright.tune.space.tabular import About, TabularSpace
from tilewright.tune.space.tabular_files import write_space
from tilewright.tune.target_key import target_text
from tilewright.tune.workload import workload_text

TARGET: CpuTarget = CPUS["aarch64"]


class ProductSpace(Space):
    """Tiles of a product: rows, columns, whether it is a vector, which loop runs in parallel."""

    def __init__(self, size: int) -> None:
        self.name = f"product-{size}"
        self.size = size

    def build(self, choose: Choose) -> None:
        """Ask for the tile; columns are a vector only where there are enough."""
        tile = choose(Site("rows", (1, 2, 4, 8))), choose(Site("columns", (1, 4, 8, 16)))
        if tile[1] != 1:
            choose(Site("vector", (False, True)))
        if tile == (8, 16):
            raise Illegal("too large")
        choose(Site("parallel", (False, True)))

    def features(self, candidates: list[Candidate]) -> np.ndarray:  # type: ignore[override]
        """Those of the program."""
        return np.vstack([program_features(self._scheduled(c).func, TARGET) for c in candidates])

    def trace(self, candidate: Candidate) -> str:
        """The steps that make the program."""
        return str(self._scheduled(candidate).trace)

    def _scheduled(self, candidate: Candidate) -> Schedule:
        chosen = dict(candidate.decisions)
        sch = Schedule(matmul(self.size, self.size, self.size))
        sch.split("y.i0", [None, chosen["rows"]])
        sch.split("y.i1", [None, chosen["columns"]])
        sch.reorder("y.i0.0", "y.i1.0", "y.r0", "y.i0.1", "y.i1.1")
        sch.unroll("y.i0.1")
        (sch.vectorize if chosen.get("vector") else sch.unroll)("y.i1.1")
        if chosen["parallel"]:
            sch.parallel("y.i0.0")
        return sch

    def measure(self, candidates: list[Candidate]) -> list[Result]:
        """The estimate, made a little different by chance: a machine is never as in the books."""
        place = feature_names().index(ESTIMATE)
        found = []
        for candidate, row in zip(candidates, self.features(candidates), strict=True):
            rng = np.random.default_rng(zlib.crc32(f"{self.size} {candidate}".encode()))
            chosen = dict(candidate.decisions)
            if chosen["rows"] == 1 and chosen["columns"] == 16 and chosen["parallel"]:
                found.append(Result(candidate, failure="crashed"))
            else:
                slow = 1 + 0.3 * rng.random()
                found.append(Result(candidate, (2 ** row[place] * slow * 1e-9,)))
        return found


def recorded(size: int) -> TabularSpace:
    """The space of a product of matrices of this size."""
    space = ProductSpace(size)
    workload = workload_text(matmul(size, size, size), frozenset())
    about = About(2.0 * size**3, "product", workload, target_text(TARGET), feature_names())
    return record(space.name, space, space.measure, space.trace, about)  # type: ignore[arg-type]


def files(folder: Path, sizes: tuple[int, ...]) -> list[str]:
    """Files of the spaces for several sizes."""
    paths = []
    for size in sizes:
        paths.append(folder / f"product-{size}.json.gz")
        write_space(paths[-1], recorded(size), "a test", "none")
    return [str(path) for path in paths]
