"""A mutated model as files: its bytes, perhaps corrupted, and data that lies elsewhere.

The model is `inside/model.onnx`; `outside/secret` is a file that it has no business with.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from onnx import ModelProto, TensorProto

from tilewright.fuzz.mutators import FREQUENT_MUTATORS, MUTATORS, RARE_MUTATORS, every_node

FOLDER, OUTSIDE, MODEL = "inside", "outside", "model.onnx"
SECRET = b"\1\2\3\4" * 1024


@dataclass(frozen=True)
class MutatedFiles:
    """The bytes of a model, the links that lie beside it, and what was done to it."""

    data: bytes
    links: tuple[tuple[str, str], ...] = ()
    done: tuple[str, ...] = ()


def random_mutations(rng: random.Random, model: ModelProto) -> MutatedFiles:
    """A model with one to three mutations."""
    copy = ModelProto()
    copy.CopyFrom(model)
    names = [*MUTATORS, *FREQUENT_MUTATORS, *FREQUENT_MUTATORS, *FREQUENT_MUTATORS]
    done, links = list[str](), list[tuple[str, str]]()
    for _ in range(rng.choice((1, 1, 2, 3))):
        name = rng.choice(names)
        if name in RARE_MUTATORS and rng.random() < 0.6:
            continue
        MUTATORS[name](rng, copy)
        done.append(name)
    if rng.random() < 0.12:
        links += elsewhere(rng, copy)
        done.append("elsewhere")
    data = copy.SerializeToString()
    if rng.random() < 0.25:
        data = corrupted_bytes(rng, data)
        done.append("bytes")
    return MutatedFiles(data, tuple(links), tuple(done))


def elsewhere(rng: random.Random, model: ModelProto) -> list[tuple[str, str]]:
    """A tensor whose data is to be read from a file; gives the links that are to lie there."""
    places = (f"../{OUTSIDE}/secret", "link", "folder/secret", "/etc/hostname", "/dev/zero", "data",
              "", ".", "folder", "nowhere", "a\0b", f"./././../{OUTSIDE}/secret", "model.onnx",
              "..\\outside\\secret", "/proc/self/mem", "loop")  # fmt: skip
    inner = [a.t for n in every_node(model) for a in n.attribute if a.HasField("t")]
    tensors = [*model.graph.initializer, *inner]
    if not tensors:
        name = rng.choice([v.name for v in model.graph.input] or ["x"])
        tensors = [model.graph.initializer.add(name=name, data_type=TensorProto.FLOAT, dims=[4])]
    tensor = rng.choice(tensors)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entries = {"location": rng.choice(places)}
    if rng.random() < 0.5:
        entries["offset"] = rng.choice(("0", "-1", "4096", "99999999999999999999", "x", "1"))
    if rng.random() < 0.5:
        entries["length"] = rng.choice(("16", "-1", "0", "99999999999999999999", "1e3"))
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    return [("link", f"../{OUTSIDE}/secret"), ("folder", f"../{OUTSIDE}"), ("loop", "loop")]


def corrupted_bytes(rng: random.Random, data: bytes) -> bytes:
    """Some bytes changed, cut out, repeated, or the end cut off."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if not found:
            break
        at = rng.randrange(len(found))
        length = rng.choice((1, 1, 4, 16, 300))
        action = rng.randrange(5)
        if action == 0:
            found[at] = rng.randrange(256)
        elif action == 1:
            found[at] ^= 1 << rng.randrange(8)
        elif action == 2:
            del found[at : at + length]
        elif action == 3:
            found[at:at] = found[at : at + length]
        elif rng.random() < 0.3:
            del found[at:]
    return bytes(found)


def write_mutated(folder: Path, model: MutatedFiles) -> Path:
    """Write a mutated model and what lies around it; gives its path."""
    inside, outside = folder / FOLDER, folder / OUTSIDE
    for one in (inside, outside):
        one.mkdir(parents=True, exist_ok=True)
    (outside / "secret").write_bytes(SECRET)
    (inside / "data").write_bytes(SECRET)
    for name, target in model.links:
        (inside / name).symlink_to(target)
    path = inside / MODEL
    path.write_bytes(model.data)
    return path
