"""Two versions of the service for every test that asks for them."""

from tests.service.upgrade.versions import versions

__all__ = ["versions"]
