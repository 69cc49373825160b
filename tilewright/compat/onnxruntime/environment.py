"""What ONNX Runtime sets for a whole process."""

from __future__ import annotations

import operator

VERSION = "1.31.1"
"""The version of ONNX Runtime whose interface is offered."""

_SEVERITIES = range(5)


def get_device() -> str:
    """Where sessions run."""
    return "CPU"


def get_version_string() -> str:
    """The version of the interface."""
    return VERSION


def get_build_info() -> str:
    """What stands behind the interface."""
    from tilewright import __version__

    return f"ORT Build Info: tilewright={__version__}"


def set_default_logger_severity(severity: int) -> None:
    """Accepted if ONNX Runtime knows it; there is no log whose length it could change."""
    if operator.index(severity) not in _SEVERITIES:
        raise RuntimeError(
            "Invalid logging severity. 0:Verbose, 1:Info, 2:Warning, 3:Error, 4:Fatal"
        )


def set_default_logger_verbosity(verbosity: int) -> None:
    """Accepted; there is no log whose length it could change."""
    operator.index(verbosity)


def set_seed(seed: int) -> None:
    """Accepted; random operators draw from seeds of their own."""
    operator.index(seed)


def set_global_thread_pool_sizes(
    intra_op_num_threads: int = 0, inter_op_num_threads: int = 0
) -> None:
    """Accepted; every session has threads of its own."""
    operator.index(intra_op_num_threads), operator.index(inter_op_num_threads)


def enable_telemetry_events() -> None:
    """Nothing is ever sent anywhere."""


def disable_telemetry_events() -> None:
    """Nothing is ever sent anywhere."""


def has_collective_ops() -> bool:
    """There are none."""
    return False


def preload_dlls(
    cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None
) -> None:
    """Accepted; no library is needed."""
