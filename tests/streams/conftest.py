"""Programs of the how-to pages, run with the library that they are for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import httpx
import pytest

from hinged_service.client import Client
from tests.docs.pages import DOCS, blocks
from tests.support.redis_server import RedisServer
from tests.support.service import Service

Program = Callable[[str, str], ModuleType]


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("streams")) as server:
        yield server


@pytest.fixture(scope="package")
def service(server: RedisServer) -> Iterator[Service]:
    with Service(server.url) as service:
        yield service


@pytest.fixture
def api(service: Service) -> Iterator[Client]:
    """A client; the model of the programs is new."""
    with Client(service.url) as client:
        httpx.delete(f"{service.url}/v1/models/mail")
        client.create_model("mail", {"learner": {"type": "perceptron"}})
        yield client


def written(page: str, file: str, folder: Path) -> Path:
    """Write a file of a page and return its path."""
    [text] = [one.text for one in blocks(DOCS / "how-to" / page) if one.file == file]
    path = folder / file
    path.write_text(text)
    return path


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Program]:
    """Import a file of a page."""
    made = []

    def imported(page: str, file: str) -> ModuleType:
        name = written(page, file, tmp_path).stem
        monkeypatch.syspath_prepend(tmp_path)
        made.append(name)
        return __import__(name)

    yield imported
    for name in made:
        sys.modules.pop(name, None)
