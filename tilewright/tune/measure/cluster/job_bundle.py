"""A job as it is sent to another machine: the bytes of its files, and its other fields.

Only strings, bytes, numbers, lists and dictionaries of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tilewright.tune.measure.job import Job

JobBundle = Mapping[str, Any]


def pack(job: Job, models: Iterable[Path] | None = None) -> JobBundle:
    """A job with the files of its workload, or with compiled models instead of these."""
    others = sorted(filter(Path.is_file, job.workload.iterdir())) if models is None else models
    paths = list(dict.fromkeys([*others, *job.inputs, *job.expected]))
    files = {path.name: path.read_bytes() for path in paths}
    assert len(files) == len(paths), "two files of a job have the same name"
    return {
        "files": files,
        "target": job.target,
        "inputs": [path.name for path in job.inputs],
        "expected": [path.name for path in job.expected],
        "threads": job.threads,
        "cold": job.cold,
        "tolerance": dict(job.tolerance),
        "checked": job.checked,
    }


def unpack(bundle: JobBundle, folder: Path) -> Job:
    """Write the files into a new folder; the job that they are."""
    folder.mkdir(parents=True)
    for name, content in bundle["files"].items():
        (folder / name).write_bytes(content)
    inputs, expected = (
        tuple(folder / name for name in bundle[word]) for word in ("inputs", "expected")
    )
    about = (bundle["threads"], bundle["cold"], bundle["tolerance"], bundle["checked"])
    return Job(folder, bundle["target"], inputs, expected, *about)
