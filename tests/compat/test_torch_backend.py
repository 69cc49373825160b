from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._dynamo
from torch import nn
from torch.nn import functional as F

from tests.frontends.torch.eager import random
from tilewright.compat import torch_backend
from tilewright.compat.torch_backend import tilewright
from tilewright.core.errors import UnsupportedError
from tilewright.ir.graph.nodes import Graph
from tilewright.tune.records import Records


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.no_grad():
        yield


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Graph]:
    """The graphs that are compiled meanwhile."""
    found: list[Graph] = []
    compile = torch_backend.compile

    def noted(graph: Graph, **options: Any) -> Any:
        found.append(graph)
        return compile(graph, **options)

    monkeypatch.setattr(torch_backend, "compile", noted)
    return found


def same(module: nn.Module, *inputs: Any, **options: Any) -> Any:
    """The compiled module, which gives what the module does."""
    made = torch.compile(module.eval(), backend=tilewright, **options)
    torch.testing.assert_close(made(*inputs), module(*inputs), rtol=1e-4, atol=1e-5)
    return made


class Residual(nn.Module):
    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.norm = nn.BatchNorm2d(outside)
        self.second = nn.Conv2d(outside, outside, 3, 1, 1)
        self.short = nn.Conv2d(inside, outside, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.second(F.relu(self.norm(self.first(x))))
        return F.relu(y + self.short(x))


class Images(nn.Module):
    """As a ResNet is made: a stem, blocks with a way around them, a mean, a product."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.Sequential(Residual(8, 8, 1), Residual(8, 16, 2))
        self.head = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1).flatten(1))


class Layer(nn.Module):
    """A layer of a transformer; `groups` of queries share their keys, positions are rotated."""

    def __init__(self, size: int, heads: int, groups: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.kv, self.causal = heads, heads // groups, causal
        self.norms = nn.ModuleList([nn.LayerNorm(size), nn.RMSNorm(size)])
        self.q, self.o = nn.Linear(size, size), nn.Linear(size, size)
        self.k, self.v = (nn.Linear(size, size // groups) for _ in range(2))
        self.up, self.down = nn.Linear(size, 2 * size), nn.Linear(size, size)

    def split(self, x: torch.Tensor, heads: int) -> torch.Tensor:
        return x.view(x.shape[0], x.shape[1], heads, -1).transpose(1, 2)

    def rotated(self, x: torch.Tensor) -> torch.Tensor:
        half = x.shape[-1] // 2
        angles = torch.arange(x.shape[2])[:, None] / 10 ** torch.arange(half)
        a, b = x[..., :half], x[..., half:]
        cos, sin = angles.cos(), angles.sin()
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norms[0](x)
        q, k = self.split(self.q(y), self.heads), self.split(self.k(y), self.kv)
        v, shared = self.split(self.v(y), self.kv), self.heads != self.kv
        y = F.scaled_dot_product_attention(
            self.rotated(q), self.rotated(k), v, is_causal=self.causal, enable_gqa=shared
        )
        x = x + self.o(y.transpose(1, 2).flatten(2))
        gate, up = self.up(self.norms[1](x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Text(nn.Module):
    def __init__(self, groups: int, causal: bool) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(31, 16), nn.Embedding(40, 16)
        self.layers = nn.Sequential(*[Layer(16, 4, groups, causal)])
        self.head = nn.Linear(16, 31, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        return self.head(F.gelu(self.layers(x)))


class Patches(nn.Module):
    """As a ViT is made: patches of an image, a token of their own class, layers."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, 4)
        self.kind, self.places = (nn.Parameter(torch.randn(1, n, 16)) for n in (1, 17))
        self.layers = nn.Sequential(Layer(16, 2, 1, causal=False))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = self.patches(x).flatten(2).mT
        rows = torch.cat([self.kind.expand(x.shape[0], -1, -1), rows], 1) + self.places
        return self.layers(rows)[:, 0]


def test_images_of_several_batches(compiled: list[Graph]) -> None:
    module = Images()
    made = same(module, random(2, 3, 32, 32), dynamic=True)
    for batch in (3, 5):
        x = random(batch, 3, 32, 32)
        torch.testing.assert_close(made(x), module(x), rtol=1e-4, atol=1e-5)
    assert len(compiled) == 1


def test_patches() -> None:
    same(Patches(), random(2, 3, 16, 16))


@pytest.mark.parametrize(
    ("groups", "causal"), [pytest.param(1, False, marks=pytest.mark.slow), (2, True)]
)
def test_texts_of_several_lengths(groups: int, causal: bool, compiled: list[Graph]) -> None:
    module = Text(groups, causal)
    made = same(module, torch.randint(0, 31, (2, 7)), dynamic=True)
    for shape in ((3, 9), (2, 12)):
        tokens = torch.randint(0, 31, shape)
        torch.testing.assert_close(made(tokens), module(tokens), rtol=1e-4, atol=1e-5)
    assert len(compiled) == 1


def test_models_of_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=31, hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, intermediate_size=32, max_position_embeddings=32,
    )  # fmt: skip
    module = transformers.LlamaForCausalLM(config).eval()
    made = torch.compile(module, backend=tilewright)
    tokens = torch.randint(0, 31, (2, 5))
    right = module(tokens, use_cache=False).logits
    torch.testing.assert_close(made(tokens, use_cache=False).logits, right, rtol=1e-4, atol=1e-5)


def test_weights_that_change_are_inputs_from_then_on(compiled: list[Graph]) -> None:
    module = nn.Linear(3, 2).eval()
    x = random(4, 3)
    made = same(module, x)
    assert [i.name for i in compiled[0].inputs] == ["arg2_1"]
    for _ in range(3):
        module.weight.mul_(2)
        torch.testing.assert_close(made(x), module(x))
    assert len(compiled) == 2
    assert len(compiled[1].inputs) == 2


def test_weights_whose_data_is_another_tensor(compiled: list[Graph]) -> None:
    module, x = nn.Linear(3, 2).eval(), random(4, 3)
    made = same(module, x)
    for seed in range(4):
        module.weight.data = random(2, 3, seed=seed)
        torch.testing.assert_close(made(x), module(x))
        nn.utils.vector_to_parameters(random(8, seed=seed), module.parameters())
        torch.testing.assert_close(made(x), module(x))
    assert [len(graph.inputs) for graph in compiled] == [1, 2, 3]


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor, by: int) -> tuple[torch.Tensor, int, None]:
        self.calls += 1
        x[0] = 7
        return x * by, x.shape[0] + by, None


def test_writing_numbers_and_nothing() -> None:
    module, x = Counting(), random(3, 2)
    made = torch.compile(module, backend=tilewright, dynamic=True)
    for by in (3, 4):
        y, number, nothing = made(x, by)
        assert x[0].tolist() == [7.0, 7.0]
        torch.testing.assert_close(y, x * by)
        assert (number, nothing) == (3 + by, None)
    assert module.calls == 2


def test_half_precision_and_strides() -> None:
    module, x = nn.Linear(4, 3).bfloat16().eval(), random(4, 5).bfloat16().T
    found = torch.compile(module, backend=tilewright)(x)
    torch.testing.assert_close(found, module(x), rtol=2e-2, atol=2e-2)


class SingularValues(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.svdvals(x)


def test_an_unknown_operator_is_named_with_its_line() -> None:
    with pytest.raises(UnsupportedError) as caught:
        torch.compile(SingularValues(), backend=tilewright, fullgraph=True)(torch.eye(3))
    text = str(caught.value)
    assert "aten._linalg_svd.default is not supported" in text
    assert "test_torch_backend.py:" in text


def test_options(tmp_path: Path) -> None:
    x = random(2, 3)
    with pytest.raises(Exception, match="no option speed"):
        torch.compile(nn.ReLU(), backend=tilewright, options={"speed": 11})(x)
    with pytest.raises(Exception, match="no mode"):
        torch.compile(nn.ReLU(), backend=tilewright, mode="max-autotune")(x)
    same(nn.ReLU(), x, options={"threads": 1, "tuned": _records(tmp_path)})


def _records(folder: Path) -> Path:
    path = folder / "records.db"
    Records(path).close()
    return path


def test_the_name_that_is_registered() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    line = 'tilewright = "tilewright.compat.torch_backend:tilewright"'
    assert f'[project.entry-points."torch_dynamo_backends"]\n{line}\n' in text
    _, _, target = line.partition(" = ")
    point = EntryPoint("tilewright", target.strip('"'), "torch_dynamo_backends")
    assert point.load() is tilewright


@pytest.mark.gpu
def test_modules_on_a_gpu() -> None:
    module = Residual(4, 8, 2).cuda()
    for batch in (1, 3):
        same(module, random(batch, 4, 12, 12).cuda())
    fast = torch.compile(module.eval(), backend=tilewright, dynamic=False)
    x = random(3, 4, 12, 12).cuda()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        results = [fast(x * 1) for _ in range(20)]
        for found in results:
            assert found.is_cuda
            torch.testing.assert_close(found, module(x), rtol=1e-4, atol=1e-5)
