from __future__ import annotations

import tilewright
from tilewright.core.version import VERSION


def test_the_package_has_it() -> None:
    assert tilewright.__version__ == VERSION
    assert all(part.isdigit() for part in VERSION.split("."))
