from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

from tests.runtime.fake_model import arguments, container, expected
from tilewright.core.dtypes import dtype
from tilewright.core.errors import ConfigError, ExecutionError
from tilewright.runtime.binding import Port
from tilewright.runtime.container import read_container
from tilewright.runtime.cpu.executable import Executable
from tilewright.runtime.host_memory import address
from tilewright.runtime.roofline.roofline import Level, Roofline

ROOT = Path(__file__).parents[3]


@pytest.fixture
def model() -> Iterator[Executable]:
    with Executable(container()) as made:
        yield made


def check(model: Executable, n: int, seed: int = 0) -> None:
    x, z = arguments(n, seed)
    for got, want in zip(model(x, z), expected(x, z), strict=True):
        assert got.dtype == np.float32
        np.testing.assert_array_equal(got, want)


def test_ports(model: Executable) -> None:
    assert model.inputs == (Port("x", dtype("f32"), ("N", 3)), Port("z", dtype("f32"), ("N",)))
    assert [port.name for port in model.outputs] == ["y", "s"]
    assert repr(model) == (
        "<Executable (x: f32[N, 3], z: f32[N]) -> (y: f32[N, 3], s: f32[2 * N])>"
    )


def test_pickling(model: Executable, tmp_path: Path) -> None:
    model.set_threads(3)
    with pickle.loads(pickle.dumps(model)) as copy, deepcopy(model) as deep:
        for other in (copy, deep):
            assert (repr(other), other.threads) == (repr(model), 3)
            assert address(other.container.weights) % 4096 == 0
            check(other, 7)
    with Executable(read_container(model.save(tmp_path / "saved.tw"))) as mapped:
        with pickle.loads(pickle.dumps(mapped)) as copy:
            check(copy, 5)


def test_notebooks_show_what_goes_in_and_out(model: Executable) -> None:
    html = model._repr_html_()
    assert html.count("<tr>") == len(model.inputs) + len(model.outputs) + 3
    assert "x: f32[N, 3]" in html


@pytest.mark.parametrize("n", [0, 1, 2, 7, 1000, 3])
def test_sizes(model: Executable, n: int) -> None:
    check(model, n)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_threads(model: Executable, threads: int) -> None:
    model.set_threads(threads)
    assert model.threads == threads
    for n in (1, 5, 257, 2, 4096):
        check(model, n, seed=n)


def test_default_threads() -> None:
    with Executable(container()) as model:
        assert model.threads == 2
    with Executable(container(), threads=3) as model:
        assert model.threads == 3
    with Executable(container(threads=0)) as model:
        assert model.threads == len(os.sched_getaffinity(0))


def test_negative_threads(model: Executable) -> None:
    with pytest.raises(ConfigError, match="threads is -1"):
        model.set_threads(-1)


def test_by_name(model: Executable) -> None:
    x, z = arguments(6)
    y, s = expected(x, z)
    np.testing.assert_array_equal(model(z=z, x=x)[0], y)
    found = model.run({"x": x, "z": z})
    assert list(found) == ["y", "s"]
    np.testing.assert_array_equal(found["s"], s)


def test_results_into_the_callers_arrays(model: Executable) -> None:
    x, z = arguments(6)
    y, s = np.empty((6, 3), np.float32), np.empty(12, np.float32)
    found = model.run({"x": x, "z": z}, into={"s": s, "y": y})
    assert found["y"] is y
    for got, want in zip((y, s), expected(x, z), strict=True):
        np.testing.assert_array_equal(got, want)


def test_special_values_pass(model: Executable) -> None:
    x = np.array([[np.nan, np.inf, -np.inf], [-0.0, 1e-45, 3e38]], np.float32)
    z = np.array([np.nan, -0.0], np.float32)
    for got, want in zip(model(x, z), expected(x, z), strict=True):
        assert got.tobytes() == want.tobytes()


def test_results_are_independent_of_later_calls(model: Executable) -> None:
    x, z = arguments(5)
    first = model(x, z)[0]
    copy = first.copy()
    model(x + 1, z)
    np.testing.assert_array_equal(first, copy)
    assert first.ctypes.data % 64 == 0


def test_memory_of_results_is_used_again(model: Executable) -> None:
    x, z = arguments(500)
    places = {model(x, z)[0].ctypes.data for _ in range(20)}
    assert len(places) == 1
    held = [model(x, z)[0] for _ in range(20)]
    assert len({array.ctypes.data for array in held}) == 20


def test_wrong_arguments_are_refused(model: Executable) -> None:
    x, z = arguments(5)
    for args, code in [
        ((x,), "run.arguments"),
        ((x, z[:4]), "run.symbol"),
        ((x[:, :2], z), "run.shape"),
        ((x.astype(np.float64), z), "run.dtype"),
    ]:
        with pytest.raises(ExecutionError) as caught:
            model(*args)
        assert caught.value.code == code
    check(model, 5)


def test_native_failure(model: Executable) -> None:
    with pytest.raises(ExecutionError, match="failed with status 7"):
        model(*arguments(13))
    check(model, 5)
    with (
        Executable(container(errors={"7": "index out of range"})) as named,
        pytest.raises(ExecutionError, match="index out of range") as caught,
    ):
        named(*arguments(13))
    assert caught.value.code == "run.check"
    assert "N = 13" in caught.value.help


def test_several_threads_may_call(model: Executable) -> None:
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for n in range(2, 13):
                check(model, n * 10 + seed, seed)
        except BaseException as error:
            failures.append(error)

    callers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not failures


def test_more_callers_than_processors(model: Executable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.runtime.cpu.executable._processors", lambda: 1)
    test_several_threads_may_call(model)
    assert len(model._contexts) == 1
    assert model._waiting == 0


def test_closing_waits_for_calls(model: Executable) -> None:
    check(model, 5)
    context = model._free.pop()  # as by a call that runs
    closer = threading.Thread(target=model.close)
    closer.start()
    closer.join(0.05)
    assert closer.is_alive()
    model._free.append(context)
    del context
    closer.join(10)
    assert not closer.is_alive()


def test_a_frame_lost_to_an_interrupt_is_not_missed(
    model: Executable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tilewright.runtime.cpu.executable._processors", lambda: 1)
    for _ in range(3):
        check(model, 5)
        model._free.pop()
    check(model, 5)
    model.close()


def test_closing_does_not_wait_for_errors_that_are_kept(model: Executable) -> None:
    kept = []
    for args in ((), arguments(13)):
        with pytest.raises(ExecutionError) as caught:
            model(*args)
        kept.append(caught.value)
    model.close()
    assert len(kept) == 2


def test_a_model_dies_with_its_last_reference() -> None:
    model = Executable(container())
    check(model, 5)
    dead = weakref.ref(model)
    del model
    assert dead() is None


def test_kernel_times(model: Executable) -> None:
    assert model.kernel_times(*arguments(4), runs=3).tolist() == [[1000, 3000]] * 3
    assert model.kernel_times(*arguments(4), runs=0).shape == (0, 2)


def test_profile(model: Executable) -> None:
    roofline = Roofline(2, {"f32": 1e9}, (Level("memory", float("inf"), 1e9),))
    profile = model.profile(*arguments(4), runs=5, roofline=roofline)
    assert [(row.name, row.calls, row.ns) for row in profile.rows] == [
        ("add", 1, (1000,) * 5),
        ("twice", 1, (3000,) * 5),
    ]
    assert len(profile.wholes) == 5
    assert min(profile.wholes) > 0


def test_report(model: Executable) -> None:
    assert model.explain() == "two kernels"
    assert model.counters == {"kernels": 2}
    assert model.manifest["symbols"] == ["N"]


def test_closing(model: Executable) -> None:
    check(model, 5)
    model.close()
    model.close()
    for use in (lambda: model(*arguments(5)), lambda: model.threads):
        with pytest.raises(ExecutionError, match="the model is closed"):
            use()
    assert model.explain() == "two kernels"


def test_foreign_target_is_refused() -> None:
    target = {"triple": "riscv64-unknown-linux-gnu", "cpu": "", "features": []}
    with pytest.raises(ExecutionError, match="compiled for riscv64"):
        Executable(container(target=target))


FORK = """
import os, sys, threading
from tests.runtime.fake_model import arguments, expected
from tilewright.runtime.load import load

model = load(sys.argv[1])
def check(n):
    x, z = arguments(n)
    assert all((a == b).all() for a, b in zip(model(x, z), expected(x, z)))

check(100)
held, context = model._change, model._free.pop()
held.acquire()  # as by other threads, in the middle of a call and of closing
child = os.fork()
if child == 0:
    check(50)
    check(200)
    model.close()
    os._exit(0)
held.release()
check(300)
assert os.waitpid(child, 0)[1] == 0
"""


def test_fork(model: Executable, tmp_path: Path) -> None:
    path = model.save(tmp_path / "model.tw")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK, str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
