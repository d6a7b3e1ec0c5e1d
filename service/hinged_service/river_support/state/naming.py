"""Names of classes, in messages and in stored objects."""

from __future__ import annotations

__all__ = ["full_name", "stored_name"]


def full_name(kind: type) -> str:
    """Return the name of a class for messages."""
    return (
        kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    )


def stored_name(kind: type) -> str:
    """Return the name under which the objects of a class of River are stored."""
    return f"{kind.__module__.removeprefix('river.')}.{kind.__name__}"
