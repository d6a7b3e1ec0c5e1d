"""A fleet that the drills share; one that a drill broke is replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.e2e.drills.drill import Drill
from tests.e2e.drills.fleet import Fleet


class _Keeper:
    """Keeps one fleet at a time."""

    def __init__(self, new_fleet: Callable[[], Fleet]) -> None:
        self._new_fleet = new_fleet
        self._fleet: Fleet | None = None

    def lend(self) -> Fleet:
        if self._fleet is not None:
            try:
                self._fleet.heal()
            except Exception:
                self.stop()
        if self._fleet is None:
            self._fleet = self._new_fleet()
            self._fleet.start()
        return self._fleet

    def stop(self) -> None:
        fleet, self._fleet = self._fleet, None
        if fleet is not None:
            fleet.stop()


@pytest.fixture(scope="session")
def _keeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Keeper]:
    keeper = _Keeper(lambda: Fleet(tmp_path_factory.mktemp("fleet")))
    yield keeper
    keeper.stop()


@pytest.fixture
def fleet(_keeper: _Keeper) -> Fleet:
    """Two workers, healthy, on a Redis with an append-only file."""
    return _keeper.lend()


@pytest.fixture
def drill(fleet: Fleet, record_property: Callable[[str, object], None]) -> Drill:
    """A drill on the shared fleet, with a model of its own."""
    return Drill(fleet.workers, lambda: fleet.server.client(), record_property)
