from __future__ import annotations

from dataclasses import replace

from tilewright.target.registry import CPUS
from tilewright.tune.target_key import differences, is_similar, target_text

V3 = CPUS["x86-64-v3"]


def test_every_property_tells_targets_apart() -> None:
    texts = {target_text(target) for target in CPUS.values()}
    assert len(texts) == len(CPUS)
    assert target_text(replace(V3, cores=2)) != target_text(V3)


def test_similar_machines_have_the_same_vectors_and_caches() -> None:
    assert is_similar(target_text(replace(V3, cores=2, cpu="other", l3=1)), V3)
    assert not is_similar(target_text(replace(V3, l2=1)), V3)
    assert not is_similar(target_text(CPUS["x86-64-v4"]), V3)
    assert not any(is_similar(text, V3) for text in ("cpu", "3", "{}"))


def test_differences_are_named() -> None:
    text = target_text(V3)
    assert differences(text, text) == []
    assert differences(text, target_text(replace(V3, cores=999, l3=1))) == ["cores", "l3"]
