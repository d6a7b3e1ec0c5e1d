"""The proxy of the engine's tests, before the shared server."""

from tests.engine.conftest import proxy

__all__ = ["proxy"]
