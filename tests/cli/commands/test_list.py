from __future__ import annotations

import pytest

from tests.cli.invoke import succeed, succeed_json
from tilewright.cli.catalog import CATALOG


@pytest.mark.parametrize("kind", CATALOG)
def test_table_and_json_say_the_same(kind: str) -> None:
    rows = succeed_json("list", kind)
    text = succeed("list", kind)
    assert rows
    assert all(row["name"] in text for row in rows)
