"""magika, unchanged: the types of the files in a folder, one call each as its own client does."""

from __future__ import annotations

from answer import arguments, repeated, report
from magika import Magika

folder, seconds = arguments()
client = Magika()
files = sorted(path for path in folder.iterdir() if path.is_file())


def identify() -> dict[str, tuple[str, str]]:
    """File name to content type and the model's own label."""
    results = [client.identify_path(path) for path in files]
    return {
        path.name: (result.output.label, result.dl.label)
        for path, result in zip(files, results, strict=True)
    }


report(*repeated(identify, seconds))
