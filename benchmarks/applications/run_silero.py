"""silero-vad, unchanged: where speech begins and ends in the WAV files of a folder."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
import torch
from answer import arguments, repeated, report
from silero_vad import get_speech_timestamps, load_silero_vad

folder, seconds = arguments()
model = load_silero_vad(onnx=True)


def read(path: Path) -> tuple[torch.Tensor, int]:
    """The samples of a file, one channel, and their rate."""
    with wave.open(str(path)) as file:
        data = np.frombuffer(file.readframes(file.getnframes()), np.int16)
        mono = data.reshape(-1, file.getnchannels()).mean(axis=1) / 32768.0
        return torch.from_numpy(mono.astype(np.float32)), file.getframerate()


sounds = {path.name: read(path) for path in sorted(folder.glob("*.wav"))}


def listen() -> dict[str, list[dict[str, int]]]:
    """File name to the spans of speech, in samples."""
    return {
        name: get_speech_timestamps(samples, model, sampling_rate=rate)
        for name, (samples, rate) in sounds.items()
    }


report(*repeated(listen, seconds))
