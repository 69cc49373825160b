from __future__ import annotations

from tests.for_each import for_each
from tilewright.cli.catalog import CATALOG


@for_each("kind", CATALOG)
def test_names_are_unique_and_rows_alike(kind: str) -> None:
    rows = CATALOG[kind]()
    names = [row["name"] for row in rows]
    assert len(set(names)) == len(names)
    assert all(row.keys() == rows[0].keys() for row in rows)


@for_each("kind", sorted(CATALOG.keys() - {"onnx", "errors"}))
def test_everything_is_described(kind: str) -> None:
    assert not [row["name"] for row in CATALOG[kind]() if not row["summary"]]
