"""Optimizers of `tw.train`, which are data: `tw.optim.AdamW(1e-3, weight_decay=0.1)`."""

from tilewright.training.optim.adafactor import Adafactor
from tilewright.training.optim.adam import Adam, AdamW
from tilewright.training.optim.lion import Lion
from tilewright.training.optim.optimizer import Optimizer
from tilewright.training.optim.sgd import SGD

__all__ = ["SGD", "Adafactor", "Adam", "AdamW", "Lion", "Optimizer"]
