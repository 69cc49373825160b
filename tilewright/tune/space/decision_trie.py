"""A prefix tree of the decisions of a space: each known prefix need not be scheduled again.

trie = DecisionTrie(build)
trie.ask(choose)           # as `Space.build`; what is known of it is not run again
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tilewright.tune.candidate import Value
from tilewright.tune.space.space import Choose, Illegal, Site

# The most nodes, some hundred bytes each; a larger trie is emptied.
LIMIT = 50_000


class _TrieNode:
    """After a prefix of decisions: the next site and a child for each value, or how it ends."""

    __slots__ = ("children", "legal", "site")

    def __init__(self) -> None:
        self.site: Site | None = None
        self.children: dict[Value, _TrieNode] = {}
        self.legal: bool | None = None


_Build: TypeAlias = Callable[[Choose], None]


class DecisionTrie:
    """The decisions of one space, as far as they were explored."""

    def __init__(self, build: _Build) -> None:
        self._build = build
        self._forget()

    def _forget(self) -> None:
        self._root = _TrieNode()
        self._count = 0

    def ask(self, choose: Choose) -> None:
        """Ask for each decision; `Illegal` if they make no program."""
        given: list[Value] = []
        node: _TrieNode | None = self._root
        while node is not None and node.site is not None:
            given.append(choose(node.site))
            node = node.children.get(given[-1])
        if node is None or node.legal is None:
            self._explore(given, choose)
        elif not node.legal:
            raise Illegal("known to be none")

    def _explore(self, given: list[Value], choose: Choose) -> None:
        """Run the space: the first decisions are `given`, the rest are asked for."""
        if self._count > LIMIT:
            self._forget()
        node, depth = self._root, 0

        def inserting(site: Site) -> Value:
            nonlocal node, depth
            node.site = site
            value = given[depth] if depth < len(given) else choose(site)
            depth += 1
            if value not in node.children:
                node.children[value] = _TrieNode()
                self._count += 1
            node = node.children[value]
            return value

        try:
            self._build(inserting)
        except Illegal:
            node.legal = False
            raise
        node.legal = True
