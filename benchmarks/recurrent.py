"""Twenty recurrent models of Keras and TensorFlow, as tf2onnx exports them.

    python -m venv .venv-keras && .venv-keras/bin/pip install tensorflow-cpu tf2onnx
    .venv-keras/bin/python benchmarks/recurrent.py           # writes results/cache/recurrent
    python benchmarks/latency.py recurrent --engines tilewright,onnxruntime --threads 1

tf2onnx turns a plain LSTM into ONNX's operator. Everything else is a `Loop`: gates as operators,
scan outputs, masks, reversed sequences, counters and arrays that are carried. Each model gets a
folder with `model.onnx`, `inputs.npz`, and `expected.npz`, which is what TensorFlow answers. This
program needs an environment of its own: TensorFlow pins packages that others need newer.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
import tf2onnx
from keras import layers

HERE = Path(__file__).resolve().parent
OPSET = 17
STEPS, FEATURES, UNITS, WORDS = 40, 32, 64, 500

Function = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """A model: what makes its function, and the shapes of its inputs, `None` left open.

    `batch` and STEPS stand for what is left open. An input of integers has a largest number.
    """

    make: Callable[[], Function]
    shapes: Sequence[tuple[int | None, ...]] = ((None, STEPS, FEATURES),)
    batch: int = 1
    largest: tuple[int, ...] = ()  # of the last inputs

    def inputs(self, rng: np.random.Generator) -> list[np.ndarray]:
        """Random values; of integers, the last third of each row is 0, which a mask leaves out."""
        found = []
        floats = len(self.shapes) - len(self.largest)
        for number, shape in enumerate(self.shapes):
            open_sizes = (self.batch, STEPS)
            sizes = [open_sizes[axis] if n is None else n for axis, n in enumerate(shape)]
            if number < floats:
                found.append(rng.standard_normal(sizes).astype(np.float32))
                continue
            values = rng.integers(1, self.largest[number - floats], sizes).astype(np.int32)
            if values.ndim > 1:
                values[:, 2 * sizes[1] // 3 :] = 0
            found.append(values)
        return found


def _sequential(*stack: Any, steps: int | None = STEPS, features: int = FEATURES) -> Function:
    return keras.Sequential([keras.Input((steps, features)), *stack])


def _masked(layer: Any) -> Function:
    """Words with padding: a step behind the end of a row keeps the state."""
    words = keras.Input((STEPS,), dtype="int32")
    found = layer(layers.Embedding(WORDS, FEATURES, mask_zero=True)(words))
    return keras.Model(words, layers.Dense(5)(found))


def _encoder_decoder() -> Function:
    x, y = keras.Input((STEPS, FEATURES)), keras.Input((20, 16))
    _, h, c = layers.LSTM(UNITS, return_state=True)(x)
    found = layers.LSTM(UNITS, return_sequences=True)(y, initial_state=[h, c])
    model = keras.Model([x, y], layers.Dense(40)(found))
    return lambda *given: model(list(given))


def _attention() -> Function:
    """Attention of all steps to all steps."""
    x = keras.Input((STEPS, FEATURES))
    y = layers.GRU(UNITS, return_sequences=True)(x)
    return keras.Model(x, layers.GlobalAveragePooling1D()(layers.Attention()([y, y])))


_WEIGHTS = np.random.default_rng(1)


def _weights(*shape: int) -> np.ndarray:
    return (_WEIGHTS.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)


def _lstm_cell(sums: Any, c: Any, forget: float = 0.0) -> tuple[Any, Any]:
    """The gates of a cell in the order of TensorFlow 1."""
    i, j, f, o = tf.split(sums, 4, 1)
    c = tf.sigmoid(f + forget) * c + tf.sigmoid(i) * tf.tanh(j)
    return tf.sigmoid(o) * tf.tanh(c), c


def _zeros(x: Any) -> Any:
    return tf.zeros((tf.shape(x)[0], UNITS))


def _array(size: Any, width: int = UNITS) -> Any:
    return tf.TensorArray(tf.float32, size=size, element_shape=(None, width))


def _while_lstm() -> Function:
    """`dynamic_rnn` of TensorFlow 1: one product of the joined input and state."""
    kernel, bias = _weights(FEATURES + UNITS, 4 * UNITS), _weights(4 * UNITS)

    def run(x: Any) -> Any:
        steps, rows = tf.shape(x)[1], tf.transpose(x, [1, 0, 2])

        def body(t: Any, h: Any, c: Any, ys: Any) -> Any:
            sums = tf.concat([tf.gather(rows, t), h], 1) @ kernel + bias
            h, c = _lstm_cell(sums, c, 1.0)
            return t + 1, h, c, ys.write(t, h)

        start = (0, _zeros(x), _zeros(x), _array(steps))
        *_, ys = tf.while_loop(lambda t, *_: t < steps, body, start)
        return tf.transpose(ys.stack(), [1, 0, 2])

    return run


def _while_ragged() -> Function:
    """Rows of different lengths; the longest one ends the loop."""
    kernel, recurrent = _weights(FEATURES, 4 * UNITS), _weights(UNITS, 4 * UNITS)

    def run(x: Any, lengths: Any) -> Any:
        steps, rows = tf.reduce_max(lengths), tf.transpose(x, [1, 0, 2])

        def body(t: Any, h: Any, c: Any, ys: Any) -> Any:
            new_h, new_c = _lstm_cell(tf.gather(rows, t) @ kernel + h @ recurrent, c)
            active = (t < lengths)[:, None]
            h, c = tf.where(active, new_h, h), tf.where(active, new_c, c)
            return t + 1, h, c, ys.write(t, tf.where(active, new_h, tf.zeros_like(h)))

        start = (0, _zeros(x), _zeros(x), _array(steps))
        _, h, _, ys = tf.while_loop(lambda t, *_: t < steps, body, start)
        return tf.transpose(ys.stack(), [1, 0, 2]), h

    return run


def _while_growing() -> Function:
    """Every step joins its result to those before."""
    kernel, recurrent = _weights(FEATURES, UNITS), _weights(UNITS, UNITS)

    def run(x: Any) -> Any:
        def body(t: Any, h: Any, ys: Any) -> Any:
            h = tf.tanh(x[:, t] @ kernel + h @ recurrent)
            return t + 1, h, tf.concat([ys, h[:, None]], 1)

        steps, none = tf.shape(x)[1], tf.zeros((tf.shape(x)[0], 0, UNITS))
        shapes = tuple(map(tf.TensorShape, ([], [None, UNITS], [None, None, UNITS])))
        start = (0, _zeros(x), none)
        return tf.while_loop(lambda t, *_: t < steps, body, start, shape_invariants=shapes)[2]

    return run


def _while_decoder() -> Function:
    """Greedy decoding: a step looks at all states of the encoder and feeds its word back."""
    words, steps = 100, 25
    table, query, output = _weights(words, 32), _weights(UNITS, UNITS), _weights(UNITS, words)
    kernel, recurrent = _weights(32 + UNITS, 4 * UNITS), _weights(UNITS, 4 * UNITS)

    def run(states: Any) -> Any:
        def body(t: Any, word: Any, h: Any, c: Any, ys: Any) -> Any:
            scores = tf.nn.softmax(tf.einsum("bh,bth->bt", h @ query, states))
            seen = tf.einsum("bt,bth->bh", scores, states)
            given = tf.concat([tf.gather(table, word), seen], 1)
            h, c = _lstm_cell(given @ kernel + h @ recurrent, c)
            logits = h @ output
            word = tf.argmax(logits, 1, output_type=tf.int32)
            return t + 1, word, h, c, ys.write(t, logits)

        word = tf.zeros((tf.shape(states)[0],), tf.int32)
        start = (0, word, _zeros(states), _zeros(states), _array(steps, words))
        *_, ys = tf.while_loop(lambda t, *_: t < steps, body, start)
        return tf.transpose(ys.stack(), [1, 0, 2])

    return run


def _rnn(layer: Callable[..., Any], *units: Any, **options: Any) -> Callable[[], Function]:
    steps, features = options.pop("steps", STEPS), options.pop("features", FEATURES)
    return lambda: _sequential(layer(*units, **options), steps=steps, features=features)


def _bidirectional(layer: Callable[..., Any], **options: Any) -> Callable[[], Function]:
    return lambda: _sequential(layers.Bidirectional(layer(48, **options)))


def _stacked() -> Function:
    deep = [layers.LSTM(UNITS, return_sequences=True) for _ in range(2)]
    return _sequential(*deep, layers.LSTM(32), layers.Dense(10))


def _stacked_cells() -> Function:
    cells = [layers.LSTMCell(32), layers.GRUCell(48)]
    return _sequential(layers.RNN(cells, return_sequences=True))


WORDS_IN = ((None, STEPS),)
OPEN = ((None, None, FEATURES),)
RAGGED = ((None, None, FEATURES), (None,))
CASES: dict[str, Case] = {
    "lstm": Case(_rnn(layers.LSTM, UNITS)),
    "lstm_hard_sigmoid": Case(_rnn(layers.LSTM, 128, recurrent_activation="hard_sigmoid"), batch=4),
    "lstm_large": Case(
        _rnn(layers.LSTM, 512, recurrent_activation="hard_sigmoid", steps=None, features=256),
        ((None, None, 256),),
    ),
    "lstm_masked": Case(lambda: _masked(layers.LSTM(UNITS)), WORDS_IN, 8, (WORDS,)),
    "lstm_stacked": Case(_stacked, batch=4),
    "lstm_both_ways": Case(_bidirectional(layers.LSTM, return_sequences=True)),
    "gru": Case(_rnn(layers.GRU, UNITS)),
    "gru_open_length": Case(_rnn(layers.GRU, 96, return_sequences=True, steps=None), OPEN, 16),
    "gru_reset_before": Case(_rnn(layers.GRU, UNITS, reset_after=False), batch=2),
    "gru_masked": Case(lambda: _masked(layers.GRU(UNITS)), WORDS_IN, 4, (WORDS,)),
    "gru_both_ways": Case(_bidirectional(layers.GRU, return_sequences=True), batch=8),
    "rnn": Case(_rnn(layers.SimpleRNN, UNITS, return_sequences=True)),
    "cells": Case(_stacked_cells),
    "conv_lstm": Case(
        lambda: keras.Sequential(
            [keras.Input((10, 16, 16, 3)), layers.ConvLSTM2D(8, 3, padding="same")]
        ),
        ((None, 10, 16, 16, 3),),
    ),
    "encoder_decoder": Case(_encoder_decoder, ((None, STEPS, FEATURES), (None, 20, 16)), 2),
    "gru_attention": Case(_attention),
    "while_lstm": Case(_while_lstm, OPEN, 4),
    "while_ragged": Case(_while_ragged, RAGGED, 8, (STEPS,)),
    "while_growing": Case(_while_growing, OPEN),
    "while_attention": Case(_while_decoder, ((None, 30, UNITS),)),
}


def export(name: str, folder: Path) -> None:
    """Write a model, random inputs and TensorFlow's answer to them."""
    keras.utils.set_random_seed(0)
    case, folder = CASES[name], folder / name
    folder.mkdir(parents=True, exist_ok=True)
    integers = len(case.shapes) - len(case.largest)
    signature = [
        tf.TensorSpec(shape, tf.float32 if number < integers else tf.int32, name=f"x{number}")
        for number, shape in enumerate(case.shapes)
    ]
    function = tf.function(case.make(), input_signature=signature)
    model, _ = tf2onnx.convert.from_function(
        function, input_signature=signature, opset=OPSET, output_path=str(folder / "model.onnx")
    )
    arrays = case.inputs(np.random.default_rng(0))
    answer = function(*arrays)
    answers = answer if isinstance(answer, tuple) else (answer,)
    names = [v.name for v in model.graph.output]
    np.savez(folder / "inputs.npz", **{f"x{i}": a for i, a in enumerate(arrays)})
    np.savez(folder / "expected.npz", **{n: a.numpy() for n, a in zip(names, answers, strict=True)})


def main() -> None:
    """Export the models that are named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("models", nargs="*", help="default: all")
    parser.add_argument("--cache", type=Path, default=HERE / "results" / "cache")
    arguments = parser.parse_args()
    for name in arguments.models or CASES:
        print(name, flush=True)
        export(name, arguments.cache / "recurrent")


if __name__ == "__main__":
    main()
