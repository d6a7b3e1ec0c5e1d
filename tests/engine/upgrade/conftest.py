"""Two versions of the service for every test that asks for them."""

from tests.engine.upgrade.versions import versions

__all__ = ["versions"]
