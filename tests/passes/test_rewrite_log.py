from __future__ import annotations

from tilewright.passes.rewrite_log import Rewrite, record, recorded


def test_only_who_asks_is_told() -> None:
    record(("a",), ("b",))
    with recorded() as outer:
        record(("a",), ("b",), "rule")
        with recorded() as inner:
            record(("c",), ("c",))
        record(("d",), ("e",))
    assert outer == [Rewrite(("a",), ("b",), "rule"), Rewrite(("d",), ("e",))]
    assert inner == [Rewrite(("c",), ("c",))]
