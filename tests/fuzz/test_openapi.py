"""Every call of the OpenAPI document, with what it allows and what it forbids."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import CheckFunction
from schemathesis.config import GenerationConfig
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation, BaseSchema
from schemathesis.specs.openapi import checks

from hinged_service.api.bodies import LINE_TYPES
from tests.fuzz.budget import ASKED, tries
from tests.support.redis_server import RedisServer
from tests.support.service import Service

SPECS: dict[str, dict[str, Any]] = {
    "spam": {"learner": {"type": "perceptron"}},
    "news": {
        "learner": {"type": "multiclass_perceptron"},
        "pipeline": [{"type": "OneHotEncoder"}],
        "stream": "spam",
        "metrics": ["accuracy"],
    },
}
EVENTS: dict[str, list[dict[str, Any]]] = {
    "spam": [{"x": {"age": 0.4, "clicks": n}, "y": n > 2} for n in range(5)],
    "news": [{"x": {"text": "free entry", "hour": 3}, "y": y} for y in ("a", "b", "3")],
}
ENDLESS = "/v1/models/{model}/live"
"""A feed has no end; it has tests of its own."""

TO_WAIT_FOR = ("catching up", "not reached that position")
"""Calls that are answered 503 while Redis is there."""

CHECKS: list[CheckFunction] = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.missing_required_header,
]
REFUSED: CheckFunction = checks.negative_data_rejection
OTHER_METHOD = 405
"""Answers to a method that the document does not have for a call."""


@schemathesis.serializer(*LINE_TYPES)
def line(_: Any, value: Any) -> bytes:
    """Return a body of one line."""
    return value if isinstance(value, bytes) else json.dumps(value).encode() + b"\n"


@schemathesis.deserializer("application/x-ndjson")
def first_line(_: Any, response: Any) -> Any:
    """Return what the first line of an answer says."""
    return json.loads(response.content.splitlines()[0])


class World:
    """A service, what there is to call, and a few models that nothing deletes for long."""

    def __init__(self, service: Service) -> None:
        self.url = service.url
        self.client = service.client()
        self.session = requests.Session()
        self.schema: BaseSchema = schemathesis.openapi.from_url(f"{self.url}/openapi.json")
        self.position = ""
        self.answered: dict[str, set[int]] = {}

    def close(self) -> None:
        """Hang up."""
        self.client.close()
        self.session.close()

    def mend(self) -> None:
        """Make what a call may have deleted."""
        for name, spec in SPECS.items():
            made = self.client.put(f"/v1/models/{name}", json=spec)
            if made.status_code == 409:
                for alias in self.client.get("/v1/aliases").json():
                    self.client.delete(f"/v1/aliases/{alias['alias']}")
                assert self.client.delete(f"/v1/models/{name}").status_code == 204
                made = self.client.put(f"/v1/models/{name}", json=spec)
            assert made.status_code in (200, 201), made.text
            if made.status_code == 201:
                learned = self.client.post(f"/v1/models/{name}/learn", json=EVENTS[name])
                self.position = learned.json()[-1]["position"]
            self.client.post(f"/v1/models/{name}/checkpoints", json={"name": f"{name}-c1"})
        self.client.put("/v1/aliases/live", json={"model": "spam"})

    def operations(self) -> Iterator[APIOperation[Any, Any, Any, Any]]:
        """Return every call but the endless one."""
        for found in self.schema.get_all_operations():
            assert isinstance(found, Ok), found.err()
            if found.ok().path != ENDLESS:
                yield found.ok()

    def existing(self, operation: Any) -> Iterator[dict[str, str]]:
        """Return path parameters that name what there is."""
        for model in SPECS:
            there = {"model": model, "checkpoint": f"{model}-c1", "alias": "live"}
            there |= {"stream": "spam", "version": self.position}
            yield {name: there[name] for name in there if f"{{{name}}}" in operation.path}

    def try_out(self, case: Any) -> None:
        """Send a request and hold the answer against the document."""
        answer = case.call(base_url=self.url, session=self.session, timeout=60)
        self.answered.setdefault(case.operation.label, set()).add(answer.status_code)
        if answer.status_code >= 500:
            assert answer.status_code == 503, answer.text
            assert any(reason in answer.text for reason in TO_WAIT_FOR), answer.text
        # schemathesis leaves this out where it sends another type of body or no body at all
        documented = {*case.operation.definition.raw["responses"], str(OTHER_METHOD)}
        assert str(answer.status_code) in documented, answer.text
        # a bad line is refused in an answer that is 200 as a whole
        lines = case.media_type in LINE_TYPES
        case.validate_response(answer, checks=CHECKS if lines else [*CHECKS, REFUSED])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with (
        RedisServer(Path(tmp_path_factory.mktemp("openapi"))) as server,
        Service(server.url, at_least_timeout_ms=20) as service,
    ):
        made = World(service)
        try:
            yield made
        finally:
            made.close()


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_all_that_the_document_allows_or_forbids(world: World, mode: GenerationMode) -> None:
    tried = set()
    for operation in world.operations():
        world.mend()
        ways = [operation.as_strategy(mode, path_parameters=p) for p in world.existing(operation)]

        @given(case=st.one_of(operation.as_strategy(mode), *ways))
        @tries(3)
        def try_out(case: Any) -> None:
            world.try_out(case)

        try:
            try_out()
        except Unsatisfiable:
            continue  # nothing that it takes can be wrong
        tried.add(operation.label)
    with_a_body = {operation.label for operation in world.operations() if operation.body}
    assert with_a_body - tried == set()


def test_the_edges_of_what_the_document_says(world: World) -> None:
    for operation in world.operations():
        world.mend()
        cases = list(
            world.schema.iter_coverage_cases(
                operation,
                generation_modes=list(GenerationMode),
                generation_config=GenerationConfig(),
            )
        )
        step = 1 if ASKED else max(1, len(cases) // 15)
        for case in cases[::step]:
            world.try_out(case)
