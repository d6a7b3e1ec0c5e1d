"""The inner loops of the learners: compiled if there is a compiled version, else in Python.

`hinged.kernel.pure` is the definition; the extension `hinged.kernel.native` gives the same
bits. The choice is made once, on import: the environment variable `HINGED_PURE=1` takes the
pure version though the compiled one is there.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

__all__ = [
    "Storage",
    "add_adaptively",
    "add_by_betting",
    "add_by_confidence",
    "add_logistic",
    "add_proximally",
    "add_shrunk",
    "is_compiled",
    "kind",
    "length",
    "norm_of",
    "shrunk_dot",
    "uncertainty",
]

is_compiled = False
"""Whether the compiled version is in use."""

if TYPE_CHECKING or os.environ.get("HINGED_PURE", "") not in ("", "0"):
    from hinged.kernel.pure import (
        Storage,
        add_adaptively,
        add_by_betting,
        add_by_confidence,
        add_logistic,
        add_proximally,
        add_shrunk,
        length,
        norm_of,
        shrunk_dot,
        uncertainty,
    )
else:
    try:
        from hinged.kernel.native import (
            Storage,
            add_adaptively,
            add_by_betting,
            add_by_confidence,
            add_logistic,
            add_proximally,
            add_shrunk,
            length,
            norm_of,
            shrunk_dot,
            uncertainty,
        )

        is_compiled = True
    except ModuleNotFoundError:  # built without a C compiler
        from hinged.kernel.pure import (
            Storage,
            add_adaptively,
            add_by_betting,
            add_by_confidence,
            add_logistic,
            add_proximally,
            add_shrunk,
            length,
            norm_of,
            shrunk_dot,
            uncertainty,
        )


def kind() -> Literal["compiled", "pure"]:
    """Return which version is in use."""
    return "compiled" if is_compiled else "pure"
