from __future__ import annotations

from scipy import special

from tests.ops.elementwise.special.values import ALL, compare


def test_ai() -> None:
    compare("airy_ai", lambda x: special.airy(x)[0], ALL[abs(ALL) < 1e3], rtol=1e-12, atol=1e-13)
