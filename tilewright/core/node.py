"""The decorators that make a class an IR node: frozen data, compared by value or hash-consed.

`@node` is for statements, types and graph nodes: plain frozen dataclasses compared by value.
`Interned` is the metaclass of expressions: building the same expression twice gives the same
object, so equality is identity and a dictionary keyed by expressions costs one pointer hash.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, TypeVar, dataclass_transform
from weakref import WeakValueDictionary

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def node(cls: type[T]) -> type[T]:
    """Make `cls` a frozen, slotted dataclass compared by value."""
    return dataclass(frozen=True, slots=True)(cls)


class Interned(type):
    """Metaclass under which equal constructor arguments give the identical object."""

    _table: ClassVar[WeakValueDictionary[tuple[Any, ...], Any]] = WeakValueDictionary()
    # The references behind the table: asking them is several times faster than asking the table.
    _references: ClassVar[dict[tuple[Any, ...], Any]] = _table.data  # type: ignore[attr-defined]

    # How many positional arguments make the key as they are; otherwise `intern_key` makes it.
    _plain_arity: int = -1

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Return the one instance for these arguments."""
        plain = len(args) == cls._plain_arity
        key = (cls, *args) if plain else cls.intern_key(*args, **kwargs)
        reference = Interned._references.get(key)
        found = None if reference is None else reference()
        if found is None:
            found = super().__call__(*args, **kwargs)
            Interned._table[key] = found
        return found

    def key_by_fields(cls) -> None:
        """Say that equal fields make equal instances: most keys are then made without a call."""
        cls._plain_arity = len(_parameters(cls))

    def intern_key(cls, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """What makes two constructions equal; a class overrides it where `==` is too coarse."""
        parameters = _parameters(cls)
        if len(args) == len(parameters):
            return (cls, *args)
        return (cls, *args, *(kwargs.get(name, d) for name, d in parameters[len(args) :]))


@cache
def _parameters(cls: Any) -> tuple[tuple[str, Any], ...]:
    """Names and defaults of what the constructor takes; `fields` is too slow to ask each time."""
    return tuple((f.name, f.default) for f in fields(cls) if f.init)


@cache
def _field_names(cls: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls))


def children(obj: Any, kind: type[T]) -> Iterator[T]:
    """The direct children of a dataclass node that are instances of `kind`, in field order."""
    for name in _field_names(obj.__class__):
        value = getattr(obj, name)
        if isinstance(value, kind):
            yield value
        elif isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, kind))
