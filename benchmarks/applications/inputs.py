"""Make real inputs for the applications: files of many types, speech, images with text.

python inputs.py FOLDER [RECORDINGS]        # FOLDER/files, FOLDER/sounds, FOLDER/images

RECORDINGS is a folder of speech, WAV files of 48 kHz as Debian's alsa-utils has them.
"""

from __future__ import annotations

import ctypes
import gzip
import json
import shutil
import sqlite3
import sys
import tarfile
import wave
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

FEW = 3
SMALLEST, LARGEST = 64, 2_000_000
SENTENCES = {
    16000: (
        "The quick brown fox jumps over the lazy dog.",
        "Speech begins here. After a pause, it goes on for a little while.",
    ),
    8000: ("One, two, three, four, five.",),
}
TEXTS = {
    "line": (28, 0, ["The quick brown fox jumps over the lazy dog"]),
    "page": (
        22,
        0,
        ["Invoice 2041", "Widgets, blue      12   18.50", "Freight            1    7.25",
         "Total due by Friday: 229.25 EUR"],
    ),
    "large": (64, 0, ["EXIT ONLY", "Gate B42"]),
    "small": (15, 0, ["Small print is still print.", "Serial number 7781-AX-03"]),
    "tilted": (30, 4, ["Slightly tilted text", "is read as well"]),
    "upside-down": (34, 180, ["Upside down"]),
    "sideways": (34, 90, ["Turned to the side"]),
}  # fmt: skip


def make_files(folder: Path) -> None:
    """A few files of each ending that this Python and its packages have, and some made here."""
    seen: Counter[str] = Counter()
    roots = [Path(sys.prefix), Path(sys.base_prefix) / "lib", Path("/usr/share")]
    for path in (p for root in roots for p in sorted(root.rglob("*"))):
        kind = path.suffix.lower() or path.name.lower()
        if seen[kind] >= FEW or len(seen) > 120 or not _usable(path):
            continue
        seen[kind] += 1
        shutil.copyfile(path, folder / f"{seen[kind]}-{path.name}")
    _make_some(folder)


def _usable(path: Path) -> bool:
    try:
        found = path.is_file() and not path.is_symlink()
        return found and SMALLEST <= path.stat().st_size <= LARGEST
    except OSError:
        return False


def _make_some(folder: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [[i, float(x)] for i, x in enumerate(rng.standard_normal(300))]
    (folder / "made.json").write_text(json.dumps({"rows": rows}))
    (folder / "made.csv").write_text("\n".join(f"{a},{b}" for a, b in rows))
    (folder / "made.bin").write_bytes(rng.bytes(5000))
    (folder / "made.empty").write_bytes(b"")
    (folder / "made.gz").write_bytes(gzip.compress((folder / "made.csv").read_bytes()))
    with zipfile.ZipFile(folder / "made.zip", "w") as archive:
        archive.write(folder / "made.csv", "a.csv")
    with tarfile.open(folder / "made.tar", "w") as archive:
        archive.add(folder / "made.json", "a.json")
    with sqlite3.connect(folder / "made.db") as database:
        database.execute("create table t (a, b)")
        database.executemany("insert into t values (?, ?)", rows)
    picture = Image.fromarray(rng.integers(0, 255, (60, 80, 3)).astype(np.uint8))
    for kind in ("png", "jpg", "gif", "bmp", "webp", "tiff", "pdf", "ico"):
        picture.save(folder / f"made.{kind}")


def make_sounds(folder: Path) -> None:
    """Synthesised speech between silences; and recorded speech where this machine has it."""
    for rate, sentences in SENTENCES.items():
        spoken, its_rate = _speak(sentences)
        step = its_rate / rate
        positions = np.arange(0, len(spoken) - 1, step)
        samples = np.interp(positions, np.arange(len(spoken)), spoken)
        _write(folder / f"spoken-{rate}.wav", samples.astype(np.int16), rate)
    recordings = Path(*sys.argv[2:3] or ["/usr/share/sounds/alsa"])
    for path in sorted(recordings.glob("*.wav")):
        _write(folder / path.name, *_third(path))


def _third(path: Path) -> tuple[np.ndarray, int]:
    """A recording of 48 kHz at 16 kHz: the mean of every three samples."""
    with wave.open(str(path)) as file:
        data = np.frombuffer(file.readframes(file.getnframes()), np.int16)
    return data[: len(data) // 3 * 3].reshape(-1, 3).mean(axis=1).astype(np.int16), 16000


def _speak(sentences: tuple[str, ...]) -> tuple[np.ndarray, int]:
    """The sentences as espeak-ng speaks them, with a second of silence around each."""
    import espeakng_loader

    library = ctypes.CDLL(espeakng_loader.get_library_path())
    parts: list[np.ndarray] = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)
    def take(data: ctypes._Pointer[ctypes.c_short], count: int, events: object) -> int:
        if data and count > 0:
            parts.append(np.ctypeslib.as_array(data, (count,)).copy())
        return 0

    synchronous, utf8 = 2, 1
    rate = library.espeak_Initialize(synchronous, 0, espeakng_loader.get_data_path().encode(), 0)
    library.espeak_SetSynthCallback(take)
    library.espeak_SetVoiceByName(b"en")
    silence = np.zeros(rate, np.int16)
    parts.append(silence)
    for sentence in sentences:
        text = sentence.encode()
        library.espeak_Synth(text, len(text) + 1, 0, 0, 0, utf8, None, None)
        library.espeak_Synchronize()
        parts.append(silence)
    return np.concatenate(parts), rate


def _write(path: Path, samples: np.ndarray, rate: int) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.tobytes())


def make_images(folder: Path) -> None:
    """Lines of text in several sizes, upright, tilted and turned."""
    for name, (size, angle, lines) in TEXTS.items():
        font = ImageFont.load_default(size)
        width = int(max(font.getlength(line) for line in lines)) + 4 * size
        height = int(len(lines) * 1.6 * size) + 3 * size
        image = Image.new("RGB", (width, height), "white")
        draw = ImageDraw.Draw(image)
        for row, line in enumerate(lines):
            draw.text((2 * size, 1.5 * size + row * 1.6 * size), line, "black", font)
        image.rotate(angle, expand=True, fillcolor="white").save(folder / f"{name}.png")


def main() -> None:
    """Make the inputs that are not there yet."""
    root = Path(sys.argv[1])
    for name, make in (("files", make_files), ("sounds", make_sounds), ("images", make_images)):
        folder = root / name
        if not folder.exists():
            folder.mkdir(parents=True)
            make(folder)


if __name__ == "__main__":
    main()
