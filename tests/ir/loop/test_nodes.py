from __future__ import annotations

import dataclasses

import pytest

from tilewright.arith.expr import Load, Var, const
from tilewright.core.dtypes import F32
from tilewright.ir.loop.nodes import Buffer, For, Seq, Store


def test_statements_compare_by_value():
    def nest() -> For:
        return For("i", Var("N"), "serial", Store("C", (Var("i"),), const(0, F32)))

    assert nest() == nest()
    assert nest() != dataclasses.replace(nest(), kind="unroll")
    assert hash(nest()) == hash(nest())


def test_nodes_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Seq(()).stmts = (Seq(()),)


def test_what_a_store_writes():
    assert Store("C", (Var("i"),), const(0, F32)).target is Load("C", (Var("i"),), F32)


def test_buffers_print_their_scope():
    assert str(Buffer("T", F32, (Var("N"), const(4)))) == "T: f32[N, 4]"
    assert str(Buffer("T", F32, (), "register")) == "T: f32[] @register"
