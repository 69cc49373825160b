"""The cheapest way to divide a graph's nodes into two sides: a minimum cut.

    cut = Cut()
    cut.choice("a", left=3.0, right=1.0)         # what either side costs for node "a"
    cut.fix("b", left=False)
    cut.differ("a", ["b"], 1.5)                  # paid if any of the others is on another side
    cut.solve()                                  # {"a"}: the nodes on the left

By Ford and Fulkerson's theorem its cost is the greatest flow from the left to the right; the flow
is found by Dinic's algorithm (E. A. Dinic, 1970).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from math import inf

LEFT, RIGHT = 0, 1
# Amounts are sums of floats: what is left of a capacity by rounding is nothing.
CAPACITY_EPSILON = 1e-9


class Cut:
    """A problem of choosing sides; nodes are named by anything hashable."""

    def __init__(self) -> None:
        self._nodes: dict[Hashable, int] = {}
        self._edges: list[tuple[int, int]] = []
        self._residual: list[float] = []
        self._from: list[list[int]] = [[], []]

    def choice(self, node: Hashable, left: float, right: float) -> None:
        """Say what a node costs on either side."""
        self._connect(LEFT, self._number(node), right)
        self._connect(self._number(node), RIGHT, left)

    def fix(self, node: Hashable, left: bool) -> None:
        """Put a node on one side."""
        self.choice(node, 0.0 if left else inf, inf if left else 0.0)

    def differ(self, node: Hashable, others: Sequence[Hashable], cost: float) -> None:
        """Pay `cost`, once, if any of `others` is not on the side of `node`."""
        one = self._number(node)
        if len(others) == 1:
            other = self._number(others[0])
            self._connect(one, other, cost, cost)
            return
        some_right, some_left = self._new(), self._new()
        self._connect(one, some_right, cost)
        self._connect(some_left, one, cost)
        for other in map(self._number, others):
            self._connect(some_right, other, inf)
            self._connect(other, some_left, inf)

    def solve(self) -> set[Hashable]:
        """The nodes on the left of a cheapest division; of several, that with the fewest."""
        while (level := self._levels())[RIGHT] is not None:
            self._block(level)
        level = self._levels()
        return {name for name, number in self._nodes.items() if level[number] is not None}

    def _number(self, node: Hashable) -> int:
        if node not in self._nodes:
            self._nodes[node] = self._new()
        return self._nodes[node]

    def _new(self) -> int:
        self._from.append([])
        return len(self._from) - 1

    def _connect(self, a: int, b: int, forth: float, back: float = 0.0) -> None:
        """An edge and its reverse, which are neighbours in the list."""
        for start, end, capacity in ((a, b, forth), (b, a, back)):
            self._from[start].append(len(self._edges))
            self._edges.append((start, end))
            self._residual.append(capacity)

    def _levels(self) -> list[int | None]:
        """Each node's distance from the left over edges with residual capacity, else `None`."""
        level: list[int | None] = [None] * len(self._from)
        level[LEFT], queue = 0, deque([LEFT])
        while queue:
            node = queue.popleft()
            for edge in self._from[node]:
                end = self._edges[edge][1]
                if self._residual[edge] > CAPACITY_EPSILON and level[end] is None:
                    level[end] = (level[node] or 0) + 1
                    queue.append(end)
        return level

    def _block(self, level: list[int | None]) -> None:
        """Send flow along shortest paths until each of them has a full edge."""
        place = [0] * len(self._from)
        path: list[int] = []
        while True:
            node = self._edges[path[-1]][1] if path else LEFT
            if node == RIGHT:
                self._fill(path)
                path = []
                continue
            edges, step = self._from[node], (level[node] or 0) + 1
            while place[node] < len(edges) and not self._open(edges[place[node]], level, step):
                place[node] += 1
            if place[node] < len(edges):
                path.append(edges[place[node]])
            elif not path:
                return
            else:  # no way on from here: the edge that led here is of no use any more
                place[self._edges[path.pop()][0]] += 1

    def _open(self, edge: int, level: list[int | None], step: int) -> bool:
        return self._residual[edge] > CAPACITY_EPSILON and level[self._edges[edge][1]] == step

    def _fill(self, path: list[int]) -> None:
        amount = min(self._residual[e] for e in path)
        for e in path:
            self._residual[e] -= amount
            self._residual[e ^ 1] += amount
