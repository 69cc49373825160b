from __future__ import annotations

import inspect

from tests.for_each import for_each
from tilewright.schedule.primitives.table import PRIMITIVES, names_of, rewrite_of


@for_each("name", PRIMITIVES)
def test_each_row_has_its_functions(name: str) -> None:
    rewrite = rewrite_of(name)
    assert rewrite.__name__ == name
    assert rewrite.__doc__
    names = names_of(name)
    if names is not None:
        assert [*inspect.signature(names).parameters] == [*inspect.signature(rewrite).parameters]
