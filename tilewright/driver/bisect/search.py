"""Binary search for the first of several versions that is wrong."""

from __future__ import annotations

from collections.abc import Callable


def first_wrong(count: int, is_wrong: Callable[[int], bool | None]) -> tuple[int, int]:
    """Neighbours `(right, wrong)` among versions 0 to `count - 1`, the last of which is wrong.

    `right` is -1 where every version is wrong. A version of which nothing can be said (`None`) may
    lie between the two.
    """
    right, wrong = -1, count - 1
    unknown: set[int] = set()
    while True:
        open_ = [v for v in range(right + 1, wrong) if v not in unknown]
        if not open_:
            return right, wrong
        middle = open_[len(open_) // 2]
        verdict = is_wrong(middle)
        if verdict is None:
            unknown.add(middle)
        elif verdict:
            wrong = middle
        else:
            right = middle
