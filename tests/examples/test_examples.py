"""Each program in `examples` runs as its user would run it, and prints what is true."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
import wave
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx.parser
import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from tests.models import mlp, reference, save

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
RATE = 16000

# Makes every package look as if it were not installed, then runs the program that is named.
WITHOUT_PACKAGES = """
import importlib.metadata, runpy, sys

def distribution(name):
    raise importlib.metadata.PackageNotFoundError(name)

importlib.metadata.distribution = distribution
sys.modules["torch"] = None
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def run(*command: object, first_on_path: Path | None = None) -> str:
    """What a program prints; the first word may be the name of an example."""
    program, *arguments = map(str, command)
    words = [sys.executable, str(EXAMPLES / program)] if program.endswith(".py") else [program]
    environment = dict(os.environ)
    if first_on_path is not None:
        inherited = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = os.pathsep.join(
            [str(first_on_path), *([inherited] if inherited else [])]
        )
    done = subprocess.run(
        [*words, *arguments], capture_output=True, text=True, timeout=600, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_read_page(tmp_path: Path) -> None:
    lines = [("The Daily Tile", 60), ("Compilers turn models", 40), ("into machine code.", 40)]
    page = Image.new("L", (800, 1000), 245)
    draw = ImageDraw.Draw(page)
    for row, (line, size) in enumerate(lines):
        draw.text((90, 100 + 100 * row), line, 30, ImageFont.load_default(size))
    for x, word in ((90, "Total 229.25"), (520, "Page 7")):  # two columns in a row
        draw.text((x, 440), word, 30, ImageFont.load_default(34))
    page = page.rotate(0.4, fillcolor=245).filter(ImageFilter.GaussianBlur(0.8))
    noise = np.random.default_rng(0).normal(0, 6, (1000, 800))
    scan = (np.asarray(page) + noise).clip(0, 255).astype(np.uint8)
    Image.fromarray(scan).save(tmp_path / "scan.png")

    printed = run("read_page.py", tmp_path / "scan.png").splitlines()
    assert printed == [*(line for line, _ in lines), "Total 229.25", "Page 7"]


def babble(seconds: float, pitch: float, rng: np.random.Generator) -> np.ndarray:
    """Vowels, one a syllable: the pulses of a voice through resonances at three formants."""
    vowels = [(730, 1090, 2440), (270, 2290, 3010), (300, 870, 2240), (530, 1840, 2480)]
    time = np.arange(int(seconds * RATE)) / RATE
    phase = np.cumsum(pitch * (1 + 0.15 * np.sin(4.4 * time) + 0.03 * np.sin(31 * time))) / RATE
    voice = np.diff(np.floor(phase), prepend=0) + 0.01 * rng.standard_normal(len(time))
    syllable, decay = int(0.22 * RATE), np.arange(int(0.03 * RATE)) / RATE
    spoken = []
    for number, start in enumerate(range(0, len(voice), syllable)):
        part = voice[start : start + syllable]
        formants = zip(vowels[number % len(vowels)], (60, 90, 120), (1, 0.6, 0.3), strict=True)
        resonance = sum(
            loud * np.exp(-np.pi * width * decay) * np.sin(2 * np.pi * center * decay)
            for center, width, loud in formants
        )
        spoken.append(np.convolve(part, resonance)[: len(part)] * np.hanning(len(part)) ** 0.5)
    sound = np.concatenate(spoken)
    return 0.3 * sound / np.abs(sound).max()


def test_speech_in_wav(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)

    def noise(seconds: float, loud: float) -> np.ndarray:
        return loud * rng.standard_normal(int(seconds * RATE))

    tone = 0.2 * np.sin(2 * np.pi * 440 / RATE * np.arange(RATE))
    parts = [noise(1, 0.003), babble(2, 110, rng), noise(1.5, 0.003), babble(1.2, 110, rng)]
    parts += [noise(1, 0.003), tone, noise(1, 0.1)]  # neither a tone nor noise is speech
    with wave.open(str(tmp_path / "sound.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((np.concatenate(parts) * 32767).astype("<i2").tobytes())

    printed = run("speech_in_wav.py", tmp_path / "sound.wav").splitlines()
    found = [[float(t) for t in re.findall(r"[\d.]+", line)] for line in printed]
    np.testing.assert_allclose(found, [[1, 3], [4.5, 5.7]], atol=0.25)


def test_search_docs(tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    for name in ("bisect.md", "profile.md", "pytorch.md", "tune-a-model.md"):
        (pages / name).symlink_to(ROOT / "docs/howto" / name)
    command = ["search_docs.py", "--docs", pages, "--model", tmp_path / "minilm.tw"]
    printed = run(*command, "run a PyTorch module")
    assert re.match(r"0\.\d\d  pytorch\.md: ", printed), printed

    (tmp_path / "torch.py").write_text("raise RuntimeError('a saved model needs no torch')")
    printed = run(*command, "tune on a cluster of machines", first_on_path=tmp_path)
    assert re.match(r"0\.\d\d  tune-a-model\.md: ", printed), printed


def test_onnxruntime_app(tmp_path: Path) -> None:
    program = EXAMPLES / "onnxruntime_app.py"
    files = [ROOT / "pyproject.toml", ROOT / "Makefile", program]
    engine, *expected = run(program, *files).splitlines()
    assert engine == "engine: onnxruntime"
    assert [kind for kind, _ in kinds(expected)] == ["toml", "makefile", "python"]

    run_app = [sys.executable, "-m", "tilewright", "run-app", "--", sys.executable]
    engine, *hooked = run(*run_app, program, *files).splitlines()
    assert engine == "engine: tilewright.compat.onnxruntime"
    assert kinds(hooked) == kinds(expected)

    other_import = "import tilewright.compat.onnxruntime as ort"
    assert other_import in program.read_text()
    changed = program.read_text().replace("    import onnxruntime as ort", f"    {other_import}")
    (tmp_path / "changed.py").write_text(changed)
    assert run(tmp_path / "changed.py", *files).splitlines() == [engine, *hooked]


def kinds(lines: list[str]) -> list[tuple[str, object]]:
    """The kind of each file and its probability, of lines `FILE: KIND PROBABILITY`."""
    words = [line.split() for line in lines]
    return [(kind, pytest.approx(float(score), abs=2e-3)) for _, kind, score in words]


@pytest.mark.slow  # docs/howto/pytorch.md, which CI runs, compiles a module for two sizes as well
def test_torch_module() -> None:
    printed = run("torch_module.py")
    found = re.findall(r"^(\d+) points: ([\d.]+)% right, (\S+) from eager mode$", printed, re.M)
    assert [int(count) for count, _, _ in found] == [10, 1000]
    assert all(float(right) > 95 for _, right, _ in found)
    assert all(float(difference) < 1e-4 for _, _, difference in found)


def test_c_program(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"  #!/bin/sh\necho short\n\n")
    files = [EXAMPLES / "c_program/main.c", ROOT / "README.md", tmp_path / "short"]
    program = run("c_program/build.py", tmp_path / "built").strip()
    _, *expected = run("onnxruntime_app.py", *files).splitlines()
    assert kinds(run(program, *files).splitlines()) == kinds(expected)
    assert [kind for kind, _ in kinds(expected)] == ["c", "markdown", "shell"]


def test_serve_threads(tmp_path: Path) -> None:
    model = mlp("N")
    path = save(model, tmp_path / "model.onnx")
    command = [sys.executable, EXAMPLES / "serve_threads.py", path, "--port", "0"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # tests that run in the background ignore it, and what they start does so too
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as server:
        try:
            assert server.stdout is not None
            address = next(line for line in server.stdout if "http://" in line).split()[-1]

            def ask(number: int) -> bool:
                x = np.random.default_rng(number).random((1 + number % 9, 16), np.float32)
                body = json.dumps({"x": x.tolist()}).encode()
                answer = json.load(urllib.request.urlopen(address, body, timeout=60))
                expected = reference(model, {"x": x})["probabilities"]
                np.testing.assert_allclose(answer["probabilities"], expected, 1e-4, 1e-6)
                return True

            with ThreadPoolExecutor(8) as clients:
                assert sum(clients.map(ask, range(200))) == 200
            for wrong in (b"", b"rubbish", b"[1]", b'{"y": [1]}', b'{"x": [[1, 2]]}'):
                with pytest.raises(urllib.error.HTTPError, match="400"):
                    urllib.request.urlopen(address, wrong, timeout=60)
        finally:
            server.send_signal(signal.SIGINT)
        *log, last = server.stdout.read().splitlines()
    assert (server.returncode, last) == (0, "stopped")
    calls = [re.fullmatch(r"(Thread-.*): [\d.]+ ms", line) for line in log]
    assert len({call[1] for call in calls if call}) == 200  # as many threads


def test_tune_on_ray(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 17]>
    net (float[32, 64] a, float[64, 48] b) => (float[32, 48] y) { c = MatMul(a, b) y = Relu(c) }"""
    path = save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    records = tmp_path / "records.db"
    printed = run("tune_on_ray.py", path, "--trials", 2, "--records", records)
    kernel, output = printed.splitlines()
    assert re.match(r"matmul_relu: 2 measurements, ", kernel)
    assert float(re.fullmatch(r"y: (\S+) from the model without tuning", output)[1]) < 1e-5
    assert records.stat().st_size > 0


@pytest.mark.parametrize(
    "program",
    [
        "c_program/build.py",
        "onnxruntime_app.py",
        "read_page.py",
        "search_docs.py",
        "speech_in_wav.py",
        "torch_module.py",
    ],
)
def test_a_missing_package_is_one_message(program: str) -> None:
    command = [sys.executable, "-c", WITHOUT_PACKAGES, str(EXAMPLES / program)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert re.fullmatch(rf".*: the docstring of .*{program} says what to install\n", done.stderr)


def test_the_table_has_every_program() -> None:
    page = (EXAMPLES / "README.md").read_text()
    named = set(re.findall(r"^\| \[`(.+?)`\]", page, re.M))
    folders = {path.parent.name + "/" for path in EXAMPLES.glob("*/*.c")}
    assert named == {path.name for path in EXAMPLES.glob("*.py")} | folders
    assert all((EXAMPLES / link).exists() for link in re.findall(r"\]\(([^)#:]+)\)", page))
