"""Gradients of recurrent layers."""

from __future__ import annotations

NO_GRADIENT = dict.fromkeys(
    ("lstm_steps", "gru_steps", "rnn_steps"), "the steps of its loop are not operators"
)
