"""Say where speech is in a WAV file.

    pip install --no-deps silero-vad    # for its model only
    python examples/speech_in_wav.py recording.wav

The wheel of silero-vad holds its voice activity detector as an ONNX model: a chunk of 32 ms and the
state after the chunk before go in, the probability of speech and the next state come out. It is a
recurrent network, so that the same loop follows a microphone.
"""

from __future__ import annotations

import argparse
import sys
import wave
from collections.abc import Callable, Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tw

try:
    DATA = Path(distribution("silero-vad").locate_file("silero_vad/data"))
except ImportError as error:
    sys.exit(f"{error}: the docstring of {__file__} says what to install")

RATE = 16000  # samples a second
CHUNK, CONTEXT = 512, 64  # samples that are new to the model, and that it has seen before
ON, OFF = 0.5, 0.35  # speech begins at the one probability and ends below the other
SHORTEST = 0.25  # seconds of speech


def main() -> None:
    """Print start and end of each stretch of speech."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help=f"a WAV file of {RATE} 16-bit samples a second")
    samples = read(parser.parse_args().file)
    model = tw.compile(DATA / "silero_vad_16k_op15.onnx", dims={"batch": 1, "sequence": 576})
    for start, end in stretches(list(probabilities(model, samples))):
        print(f"{start:.2f} s to {end:.2f} s")


def read(path: Path) -> np.ndarray:
    """The samples of a file from -1 to 1, the mean of its channels."""
    with wave.open(str(path)) as file:
        if (file.getframerate(), file.getsampwidth()) != (RATE, 2):
            sys.exit(f"{path} does not have {RATE} 16-bit samples a second")
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        return samples.reshape(-1, file.getnchannels()).mean(axis=1, dtype=np.float32) / 32768


def probabilities(model: Callable[..., Any], samples: np.ndarray) -> Iterator[float]:
    """The probability of speech in each chunk."""
    state = np.zeros((2, 1, 128), np.float32)
    padded = np.pad(samples, (CONTEXT, -len(samples) % CHUNK))
    for start in range(0, len(padded) - CONTEXT, CHUNK):
        probability, state = model(padded[None, start : start + CONTEXT + CHUNK], state, RATE)
        yield probability.item()


def stretches(probabilities: list[float]) -> Iterator[tuple[float, float]]:
    """Start and end of speech in seconds, with hysteresis."""
    begun = None
    for chunk, probability in enumerate([*probabilities, 0.0]):
        if begun is None and probability >= ON:
            begun = chunk
        elif begun is not None and probability < OFF:
            start, end = begun * CHUNK / RATE, chunk * CHUNK / RATE
            begun = None
            if end - start >= SHORTEST:
                yield start, end


if __name__ == "__main__":
    main()
