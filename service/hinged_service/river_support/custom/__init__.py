"""The operator's own River pipelines as models: trusted code, named and versioned.

`hinged serve --models my_models.py` loads them when a worker starts. Nothing posted or
stored names code: a spec holds the name and the version of what the operator has loaded.
"""

from __future__ import annotations

from hinged_service.river_support.custom.model import CustomModel
from hinged_service.river_support.custom.registry import install
from hinged_service.river_support.custom.spec import CustomSpec

__all__ = ["CustomModel", "CustomSpec", "install"]
