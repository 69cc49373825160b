from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.target.gpu import with_tf32
from tilewright.target.registry import CPUS, GPUS
from tilewright.tune.target_key import (
    differences,
    is_similar,
    parse_target,
    target_text,
    versions,
)

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


def test_texts_are_targets_again() -> None:
    for target in (*CPUS.values(), *GPUS.values(), with_tf32(GPUS["sm_80"])):
        known = parse_target(target_text(target))
        assert target_text(known) == target_text(target)
        assert type(known) is type(target)
    assert parse_target(target_text(GPUS["sm_90a"])) == GPUS["sm_90a"]


def test_gpus_are_told_apart_and_are_no_processors() -> None:
    texts = {target_text(target) for target in GPUS.values()}
    assert len(texts) == len(GPUS)
    h200 = GPUS["sm_90a"]
    assert is_similar(target_text(replace(h200, sm_count=78, memory_rate=1)), h200)
    assert not is_similar(target_text(GPUS["sm_80"]), h200)
    assert not is_similar(target_text(V3), h200)
    assert not is_similar(target_text(h200), V3)


def test_versions_name_the_product_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    class Product:
        name = "NVIDIA H200"

    monkeypatch.setattr("tilewright.tune.target_key.cuda_device", Product)
    assert dict(versions(GPUS["sm_90a"]))["gpu"] == "NVIDIA H200"
    assert "gpu" not in dict(versions(V3))
