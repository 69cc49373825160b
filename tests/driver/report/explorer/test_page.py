from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import tilewright
from tilewright.driver.report.explorer.document import ExploredModel, explorer_document
from tilewright.driver.report.explorer.page import explorer_page, model_texts

FILES = Path(tilewright.__file__).parent / "driver/report/explorer/page"
MODULES = sorted(FILES.glob("*.js"))


def blobs(page: str) -> dict[str, Any]:
    found = re.findall(r'<script type="application/deflate" id="(.*?)">(.*?)</script>', page)
    return {name: json.loads(zlib.decompress(base64.b64decode(text))) for name, text in found}


def test_a_page_holds_the_document_and_texts(measured: ExploredModel) -> None:
    document = explorer_document(measured)
    texts = dict(model_texts(measured))
    page = explorer_page(document, texts.items())
    held = blobs(page)
    assert held.pop("document") == document
    assert held == texts
    assert set(held) == {k["text"] for k in document["kernels"]}


def test_a_page_needs_no_other_file(unmeasured: ExploredModel) -> None:
    document = explorer_document(unmeasured)
    document["model"]["name"] = "a <b> & c"
    page = explorer_page(document)
    assert "<title>a &lt;b&gt; &amp; c · Tilewright explorer</title>" in page
    assert not re.search(r"""<(script|link|img)[^>]*\b(src|href)=|@import|url\(""", page)
    assert "{{" not in re.sub(r"<script.*?</script>", "", page, flags=re.S)
    imports = json.loads(re.search(r'"importmap">(.*?)</script>', page)[1])["imports"]  # type: ignore[index]
    assert set(imports) == {f"explorer/{file.name}" for file in MODULES}
    assert 'from "./' not in page
    HTMLParser().feed(page)


def test_modules_import_only_each_other() -> None:
    names = {file.name for file in MODULES}
    for file in MODULES:
        text = file.read_text()
        assert len(text.splitlines()) <= 200, f"split {file.name}"
        assert set(re.findall(r'from "\./(.*?)"', text)) <= names
        assert text.startswith("// "), f"{file.name} says what it is"


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_scripts() -> None:
    tests = Path(__file__).with_name("page_scripts.mjs")
    done = subprocess.run(
        ["node", "--test", str(tests)],
        capture_output=True,
        text=True,
        env={"PAGE": FILES.as_uri(), "PATH": "/usr/bin:/bin:/usr/local/bin"},
        timeout=60,
    )
    assert done.returncode == 0, done.stdout
