"""`tilewright doctor`: what this machine has, what works, how to get what is missing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import click

from tilewright.cli.options import json_option
from tilewright.cli.output import print_json, print_table, size_text

if TYPE_CHECKING:
    from tilewright.core.host.core_rates import CoreRates
    from tilewright.runtime.cpu.executable import Executable

OPTIONAL = {
    "onnxruntime": "to compare with in `tilewright bench`: pip install onnxruntime",
    "torch": "to compile PyTorch modules: pip install 'tilewright[torch]'",
    "jax": "to compare with in `tilewright bench`: pip install jax",
    "lightgbm": "for learned cost models: pip install 'tilewright[tune]'",
    "ray": "to tune on many machines: pip install 'tilewright[cluster]'",
    "magika": "for the demonstration: pip install 'tilewright[demo]'",
}


class MachineCheck(NamedTuple):
    """One line of the report: `status` is ok, missing (optional) or failed."""

    what: str
    status: str
    detail: str


@click.command("doctor")
@click.option("--roofline", is_flag=True, help="Measure the roofline of this machine again.")
@click.option(
    "--calibrate",
    "task",
    flag_value="calibrate",
    help="Measure the rates that cost models read, for the target `native`; under a minute.",
)
@click.option(
    "--reset-calibration",
    "task",
    flag_value="reset",
    help="Go back to the built-in rates.",
)
@click.option(
    "--force", is_flag=True, help="With --calibrate: keep what a busy machine gives, too."
)
@json_option
@click.pass_context
def doctor_command(
    ctx: click.Context, roofline: bool, task: str | None, force: bool, as_json: bool
) -> None:
    """MachineCheck this machine and this installation."""
    if force and task != "calibrate":
        raise click.UsageError("--force is for --calibrate")
    task = "calibrate anyway" if force else task
    checks = TASKS[task] if task else (_machine, _roofline) if roofline else CHECKS
    findings = [finding for check in checks for finding in _guarded(check)]
    if as_json:
        print_json([finding._asdict() for finding in findings])
    else:
        print_table(["what", "status", "detail"], findings)
    if any(finding.status == "failed" for finding in findings):
        ctx.exit(1)


def _guarded(check: Callable[[], Iterator[MachineCheck]]) -> Iterator[MachineCheck]:
    """A check that fails in a way it did not foresee is itself a finding."""
    try:
        yield from check()
    except Exception as error:
        yield MachineCheck(check.__name__.strip("_"), "failed", f"{type(error).__name__}: {error}")


def _versions() -> Iterator[MachineCheck]:
    import platform
    from importlib.metadata import version

    from llvmlite import binding

    import tilewright

    yield MachineCheck("tilewright", "ok", tilewright.__version__)
    yield MachineCheck("python", "ok", f"{platform.python_version()} on {platform.platform()}")
    llvm = ".".join(map(str, binding.llvm_version_info))
    yield MachineCheck("llvmlite", "ok", f"{version('llvmlite')}, LLVM {llvm}")
    for package in ("numpy", "onnx", "ml_dtypes", "islpy"):
        yield MachineCheck(package, "ok", version(package))


def _machine() -> Iterator[MachineCheck]:
    from tilewright.target.host import host

    yield MachineCheck("machine", "ok", host().describe())


def _calibration() -> Iterator[MachineCheck]:
    from tilewright.target.calibration.store import read_calibration

    rates = read_calibration()
    if rates is None:
        detail = "built-in rates; measure this machine's with `tilewright doctor --calibrate`"
        yield MachineCheck("calibration", "ok", detail)
    else:
        yield MachineCheck("calibration", "ok", f"measured; {_rates_text(rates)}")


def _calibrate(force: bool = False) -> Iterator[MachineCheck]:
    from tilewright.driver.calibrate import calibrate

    yield MachineCheck("calibration", "ok", f"measured; {_rates_text(calibrate(force))}")


def _calibrate_anyway() -> Iterator[MachineCheck]:
    yield from _calibrate(force=True)


def _reset_calibration() -> Iterator[MachineCheck]:
    from tilewright.driver.calibrate import reset_calibration

    detail = "removed" if reset_calibration() else "there was none"
    yield MachineCheck("calibration", "ok", f"{detail}; the built-in rates hold")


def _rates_text(rates: CoreRates) -> str:
    bandwidths = (
        rates.l1_bytes_per_cycle,
        rates.l2_bytes_per_cycle,
        rates.l3_bytes_per_cycle,
        rates.memory_bytes_per_cycle,
    )
    return (
        f"{rates.frequency / 1e9:.2f} GHz, {rates.fma_per_cycle:.1f} FMA/cycle, latency "
        f"{rates.fma_latency:.1f}; L1/L2/L3/memory {'/'.join(f'{b:.1f}' for b in bandwidths)} "
        f"bytes/cycle; fork and join {rates.fork_cycles:.0f} cycles"
    )


def _roofline() -> Iterator[MachineCheck]:
    """What `profile` and `explain` compare kernels with; the best of all times it was measured."""
    from tilewright.runtime.roofline.machine_roofline import machine_roofline
    from tilewright.target.host import host

    for threads in dict.fromkeys((1, host().cores)):
        found = machine_roofline(threads, again=True)
        for element, rate in found.flops_per_second.items():
            what = "multiply-adds" if element == "f32" else "dot products"
            detail = f"{rate / 1e9:.1f} G operations/s in {what}"
            yield MachineCheck(f"{element}, {threads} threads", "ok", detail)
        for level in found.levels:
            detail = f"{level.bytes_per_second / 1e9:.1f} GB/s read"
            yield MachineCheck(f"{level.name}, {threads} threads", "ok", detail)
    yield MachineCheck("clock", "ok", f"{found.clock_ns:.0f} ns to read")


def _cache() -> Iterator[MachineCheck]:
    from tilewright.core.disk_cache import open_cache
    from tilewright.core.errors import ConfigError

    store = open_cache()
    if store is None:
        yield MachineCheck("cache", "missing", "switched off by TW_CACHE")
        return
    try:
        store.put("doctor-check", lambda file: file.write_text("ok")).unlink()
    except ConfigError as error:
        yield MachineCheck("cache", "failed", f"{error.message}; set TW_CACHE_DIR, or TW_CACHE=off")
        return
    files = [p.stat().st_size for p in (store.root / "objects").rglob("*") if p.is_file()]
    limit = size_text(store.limit)
    detail = f"{store.root}: {len(files)} files, {size_text(sum(files))} of {limit}"
    yield MachineCheck("cache", "ok", detail)


def _compiler() -> Iterator[MachineCheck]:
    import numpy as np

    from tilewright.target.host import host

    start = time.perf_counter()
    with _tiny_model() as model:
        seconds = time.perf_counter() - start
        x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
        wanted = np.maximum(x @ x, 0)
        right = np.allclose(np.asarray(model(x, x)), wanted, atol=1e-4)
        status = "ok" if right else "failed"
        yield MachineCheck("compile and run", status, f"a small model in {seconds:.2f} s")
        model.set_threads(host().cores)
        results = {np.asarray(model(x, x)).tobytes() for _ in range(20)}
        model.set_threads(1)
        results.add(np.asarray(model(x, x)).tobytes())
        same = f"{host().cores} threads and 1 thread give the same bits"
        yield MachineCheck("threads", "ok" if len(results) == 1 else "failed", same)


def _tiny_model() -> Executable:
    from tilewright.core.dtypes import F32
    from tilewright.driver.compile import compile
    from tilewright.ir.types import tensor
    from tilewright.ops.graph_builder import GraphBuilder
    from tilewright.runtime.cpu.executable import Executable

    g = GraphBuilder("doctor")
    x, y = (g.input(name, tensor(F32, 64, 64)) for name in ("x", "y"))
    model = compile(g.graph(g.add("relu", g.add("matmul", x, y))), cache=False)
    assert isinstance(model, Executable)
    return model


def _linker() -> Iterator[MachineCheck]:
    import shutil

    found = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if found is None:
        yield MachineCheck("C compiler", "missing", "to export libraries: install gcc or clang")
    else:
        yield MachineCheck("C compiler", "ok", f"{found}, links exported libraries")


def _packages() -> Iterator[MachineCheck]:
    from importlib.metadata import PackageNotFoundError, version

    for package, help in OPTIONAL.items():
        try:
            yield MachineCheck(package, "ok", version(package))
        except PackageNotFoundError:
            yield MachineCheck(package, "missing", help)


CHECKS = (_versions, _machine, _calibration, _cache, _compiler, _linker, _packages)
TASKS = {
    "calibrate": (_machine, _calibrate),
    "calibrate anyway": (_machine, _calibrate_anyway),
    "reset": (_machine, _reset_calibration),
}
