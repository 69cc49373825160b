from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper

from tests.models import mlp, transformer
from tilewright.driver.tuning.extract_tasks import extract_tasks
from tilewright.driver.tuning.task_files import read_task, write_task
from tilewright.ir.graph.text import print_graph
from tilewright.target.host import host


@pytest.mark.parametrize("precision", ["f32", "bf16"])
def test_what_is_written_is_read(tmp_path: Path, precision: str) -> None:
    for number, task in enumerate(extract_tasks(transformer(1, "S"), host(), {}, precision).tasks):
        job = write_task(tmp_path / str(number), task, host(), threads=1)
        graph, read_precision = read_task(job.workload)
        assert print_graph(graph) == print_graph(task.graph)
        assert read_precision == precision
        assert len(job.inputs) == len(graph.inputs)
        assert len(job.expected) == len(graph.outputs)


def test_expected_is_what_the_model_gives(tmp_path: Path) -> None:
    model = mlp(3)
    tasks = extract_tasks(model, host()).tasks
    job = write_task(tmp_path / "t", tasks[0], host())
    (x,) = map(np.load, job.inputs)
    (y,) = map(np.load, job.expected)
    weights = {i.name: i for i in model.graph.initializer}
    w, b = (numpy_helper.to_array(weights[name]) for name in ("w1", "b1"))
    np.testing.assert_allclose(y, np.maximum(x @ w + b, 0), rtol=1e-5, atol=1e-6)
