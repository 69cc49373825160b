from __future__ import annotations

import pytest

from tests.tune.benchmark.programs import files


@pytest.fixture(scope="session")
def products(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Files of four measured spaces of programs."""
    return files(tmp_path_factory.mktemp("spaces"), (24, 48, 96, 200))
