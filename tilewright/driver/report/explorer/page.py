"""The explorer's page: its files in `page/` and a document, put together into one HTML file.

JavaScript modules stay modules: an import map gives each a `data:` address, so that the page needs
no server. The document, and the texts of each kernel, are deflated JSON in base64, which the page
expands when it is opened, or when a kernel is. Where it is served, it asks for the texts instead.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from tilewright.driver.report.explorer.document import ExploredModel
from tilewright.driver.report.explorer.kernel_texts import kernel_texts

_FILES = files("tilewright.driver.report.explorer") / "page"
_ENTRY = "main.js"
_IMPORT = re.compile(r'from "\./(\w+\.js)"')


def model_texts(model: ExploredModel) -> Iterator[tuple[str, dict[str, Any]]]:
    """The texts of each kernel, under the name that the document has for them."""
    build = model.build
    steps = {step.kernel.name: step for step in reversed(build.steps)}
    for number, name in enumerate(build.distinct_kernels):
        text = kernel_texts(steps[name], build.target, build.precision)
        yield model.text_name(number), text


def explorer_page(
    document: Mapping[str, Any], texts: Iterable[tuple[str, Mapping[str, Any]]] = ()
) -> str:
    """The page; without `texts` it asks for them at `texts/<name>`."""
    parts = {
        "TITLE": escape(f"{document['model']['name']} · Tilewright explorer"),
        "STYLE": _read("style.css"),
        "IMPORTS": json.dumps({"imports": dict(_modules())}),
        "ENTRY": f'import "explorer/{_ENTRY}";',
        "DOCUMENT": _deflated("document", document),
        # Behind the script, which need not wait for them.
        "TEXTS": "\n".join(_deflated(*pair) for pair in texts),
    }
    page = _read("index.html")
    for name, text in parts.items():
        page = page.replace(f"{{{{{name}}}}}", text, 1)
    return page


def _modules() -> Iterator[tuple[str, str]]:
    """The JavaScript modules by the names under which they import each other."""
    for file in sorted(_FILES.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".js"):
            source = _IMPORT.sub(r'from "explorer/\1"', file.read_text(encoding="utf-8"))
            yield f"explorer/{file.name}", f"data:text/javascript,{quote(source)}"


def _read(name: str) -> str:
    return (_FILES / name).read_text(encoding="utf-8")


def _deflated(name: str, data: Mapping[str, Any]) -> str:
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    return f'<script type="application/deflate" id="{escape(name)}">{packed}</script>'
