"""Inputs of the zoo's models: one function a kind, from a generator, batch and sequence length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]
MakeInputs = Callable[[np.random.Generator, int, int], Arrays]
Numbers = type[np.floating[Any]]


def narrowed(array: np.ndarray, numbers: Numbers) -> np.ndarray:
    """The array, numbers of f32 in another type."""
    with np.errstate(over="ignore"):
        return array.astype(numbers) if array.dtype == np.float32 else array


def pixels(rng: np.random.Generator, batch: int, _: int) -> Arrays:
    """Normalised 224x224 images: coarse patches, which survive pooling, under fine noise."""
    coarse = rng.standard_normal((batch, 3, 7, 7), dtype=np.float32).repeat(32, 2).repeat(32, 3)
    fine = rng.standard_normal((batch, 3, 224, 224), dtype=np.float32)
    return {"pixel_values": coarse + np.float32(0.5) * fine}


def masked_text(rng: np.random.Generator, batch: int, sequence: int) -> Arrays:
    """Ids padded at the end to different lengths, in two segments."""
    lengths = sequence - sequence // 16 - np.arange(batch)[:, None] % 7 * (sequence // 8)
    position = np.arange(sequence)[None, :]
    return {
        "input_ids": rng.integers(0, 30522, (batch, sequence)),
        "attention_mask": (position < lengths).astype(np.int64),
        "token_type_ids": np.repeat((position >= sequence // 2).astype(np.int64), batch, axis=0),
    }


def plain_text(rng: np.random.Generator, batch: int, sequence: int) -> Arrays:
    """Ids padded at the end to different lengths, without segments."""
    arrays = masked_text(rng, batch, sequence)
    return {name: arrays[name] for name in ("input_ids", "attention_mask")}


def prompt(rng: np.random.Generator, batch: int, sequence: int) -> Arrays:
    """A prompt of random GPT-2 ids."""
    return {"input_ids": rng.integers(0, 50257, (batch, sequence))}


def short_prompt(rng: np.random.Generator, batch: int, sequence: int) -> Arrays:
    """A prompt of random ids of a vocabulary of 32 thousand."""
    return {"input_ids": rng.integers(0, 32000, (batch, sequence))}


def spectrum(rng: np.random.Generator, batch: int, _: int) -> Arrays:
    """What Whisper reads: 30 s of sound as 80 bands of 3000 moments."""
    return {"sound": rng.standard_normal((batch, 80, 3000), dtype=np.float32)}


def file_bytes(rng: np.random.Generator, batch: int, _: int) -> Arrays:
    """What Magika reads: bytes of a file's start and end (text, here), 256 standing for none."""
    content = rng.integers(32, 127, (batch, 2048), dtype=np.int32)
    content[:, -128:] = 256
    return {"bytes": content}


def next_token(rng: np.random.Generator, batch: int, sequence: int) -> Arrays:
    """One GPT-2 id and the keys and values of the `sequence` before it."""
    cached = {
        f"past.{i}": rng.standard_normal((batch, 12, sequence, 64), dtype=np.float32)
        for i in range(24)
    }
    return {"input_ids": rng.integers(0, 50257, (batch, 1)), **cached}


def features(rng: np.random.Generator, batch: int, sequence: int) -> Arrays:
    """A sequence of 512 features a step."""
    return {"features": rng.standard_normal((batch, sequence, 512), dtype=np.float32)}


def clicks(rng: np.random.Generator, batch: int, _: int) -> Arrays:
    """Examples of a click predictor: 13 numbers and 26 ids each."""
    dense = rng.standard_normal((batch, 13), dtype=np.float32)
    return {"dense": dense, "sparse": rng.integers(0, 10_000, (batch, 26))}


def speech(rng: np.random.Generator, batch: int, _: int) -> Arrays:
    """What Silero VAD reads at 16 kHz: 36 ms of sound, its state, the sampling rate."""
    return {
        "input": (0.1 * rng.standard_normal((batch, 576))).astype(np.float32),
        "state": rng.standard_normal((2, batch, 128), dtype=np.float32),
        "sr": np.array(16000),
    }


def picture(height: int, width: int) -> MakeInputs:
    """Return a maker of pictures scaled to -1..1: dark strokes on light ground."""

    def make(rng: np.random.Generator, batch: int, _: int) -> Arrays:
        strokes = rng.random((batch, 1, height // 8, width // 8)) < 0.3
        ground = np.where(strokes.repeat(8, 2).repeat(8, 3), -0.8, 0.8)
        noise = 0.1 * rng.standard_normal((batch, 3, height, width))
        return {"x": (ground + noise).astype(np.float32)}

    return make
