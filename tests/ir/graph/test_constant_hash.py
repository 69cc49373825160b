from __future__ import annotations

import gc

import numpy as np

from tilewright.ir.graph import constant_hash
from tilewright.ir.graph.constant_hash import content_hash


def test_the_hash_is_of_what_the_array_holds():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert content_hash(x) == content_hash(x.copy())
    assert content_hash(x) == content_hash(np.asfortranarray(x))
    assert content_hash(x.T) == content_hash(np.ascontiguousarray(x.T))
    others = [x + 1, x.reshape(3, 2), x.astype(np.float64), x.view(np.int32), x[:, :2]]
    assert len({content_hash(o) for o in [x, *others]}) == 6


def test_scalars_empty_arrays_and_strings():
    assert content_hash(np.array(1.0)) != content_hash(np.array([1.0]))
    assert content_hash(np.zeros((0, 2))) != content_hash(np.zeros((2, 0)))
    names = [np.array(n, object) for n in (["a", "b"], ["ab", ""])]
    assert content_hash(names[0]) != content_hash(names[1])
    assert content_hash(np.zeros(2, np.float32)) != content_hash(-np.zeros(2, np.float32))


def test_hashes_of_large_arrays_are_forgotten_with_them():
    before = len(constant_hash._remembered)
    x = np.zeros(constant_hash.REMEMBERED_BYTES, np.uint8)
    first = content_hash(x)
    assert content_hash(x) is first
    assert len(constant_hash._remembered) == before + 1
    del x
    gc.collect()
    assert len(constant_hash._remembered) == before
    assert content_hash(np.ones(constant_hash.REMEMBERED_BYTES, np.uint8)) != first
