from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tests.training.nets import batch, net
from tilewright.core.errors import ConfigError
from tilewright.training.optim import AdamW, Optimizer
from tilewright.training.trainer import Trainer


def trainer(optimizer: Optimizer | None = None) -> Trainer:
    return tw.train(net(), "cross_entropy", optimizer or AdamW(0.05), max_norm=1.0)


REST = """
import sys
import numpy as np
from tests.training.nets import batch
from tests.training.test_trainer import trainer
t = trainer()
t.restore(sys.argv[1])
losses = [t(*batch(i)) for i in range(3, 6)]
np.savez(sys.argv[2], losses=losses, **t.state())
"""


def test_a_fresh_process_goes_on_bit_for_bit(tmp_path: Path) -> None:
    first = trainer()
    for i in range(3):
        first(*batch(i))
    saved = first.save(tmp_path / "c.safetensors")
    losses = [first(*batch(i)) for i in range(3, 6)]
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", REST, str(saved), str(tmp_path / "rest.npz")]
    subprocess.run(command, check=True, cwd=root)
    rest = np.load(tmp_path / "rest.npz")
    assert rest["losses"].tolist() == losses
    for name, value in first.state().items():
        assert rest[name].tobytes() == value.tobytes(), name
    again = trainer()
    again.restore(saved)
    assert again.steps == 3


def test_batches_by_name_and_of_several_sizes() -> None:
    ours, other = trainer(), trainer()
    for i, rows in enumerate((5, 3, 5)):
        x, y = batch(i, rows)
        assert ours(x, y) == other(target=y, x=x)
    x, y = batch(0)
    for given in ((x,), (x, y, y)):
        with pytest.raises(ConfigError, match=r"train\.batch"):
            ours(*given)
    with pytest.raises(ConfigError, match=r"train\.batch"):
        ours(x, y, target=y)


def test_what_is_asked_for_are_copies() -> None:
    t = trainer()
    before = t.parameters
    assert list(before) == ["w1", "b1", "w2"]
    t(*batch(0))
    assert not np.array_equal(before["w1"], t.parameters["w1"])
    t.state()["w1"][:] = 0
    assert t.parameters["w1"].any()


def test_checkpoints_that_do_not_fit(tmp_path: Path) -> None:
    saved = trainer().save(tmp_path / "a.safetensors")
    with pytest.raises(ConfigError, match=r"optimizer\.mean\.w1"):
        trainer(tw.optim.SGD(0.1)).restore(saved)
    with pytest.raises(ConfigError, match="not in the checkpoint"):
        trainer().restore(trainer(tw.optim.SGD(0.1)).save(tmp_path / "b.safetensors"))
    wide = tw.train(net("f64"), "cross_entropy", AdamW(0.05))
    with pytest.raises(ConfigError, match="float32"):
        wide.restore(saved)
    from tilewright.training.checkpoint import write_checkpoint

    other = write_checkpoint(tmp_path / "d.safetensors", trainer().state(), {})
    with pytest.raises(ConfigError, match="not of a trainer"):
        trainer().restore(other)
