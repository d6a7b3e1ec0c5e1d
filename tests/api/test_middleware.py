"""The app with middleware, or mounted in another app, serves as it does alone."""

import contextlib
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from fastapi import FastAPI, Request, Response
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware

import hinged
from tests.support.checks import check_problem
from tests.support.plain_fold import fold_log
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.running import serving
from tests.support.service import Service, post_bytes, read_answer

PERCEPTRON = {"learner": {"type": "perceptron"}}


async def _stamp(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
    answer = await go_on(request)
    answer.headers["x-seen"] = request.url.path
    return answer


def stamped(app: FastAPI) -> FastAPI:
    app.add_middleware(BaseHTTPMiddleware, dispatch=_stamp)
    return app


def zipped(app: FastAPI) -> FastAPI:
    app.add_middleware(GZipMiddleware, minimum_size=1)
    return app


def mounted(app: FastAPI) -> FastAPI:
    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with app.router.lifespan_context(app):
            yield

    outer = FastAPI(lifespan=lifespan)
    outer.mount("/ml", app)
    return outer


@pytest.mark.parametrize(
    ("wrap", "at"), [(stamped, ""), (zipped, ""), (mounted, "/ml")], ids=["own", "gzip", "mount"]
)
def test_every_call_works_as_it_does_alone(
    own_server: RedisServer, wrap: Callable[[FastAPI], FastAPI], at: str
) -> None:
    with serving(own_server.url, wrap=wrap) as client:
        model = f"{at}/v1/models/m"
        assert client.put(model, json=PERCEPTRON).status_code == 201
        learned = client.post(f"{model}/learn", json={"x": {"a": 1}, "y": True, "id": "e"})
        assert (learned.status_code, learned.json()["mistake"]) == (200, True)
        asked = client.post(f"{model}/predict", json=[{"x": {"a": 1}}] * 50)
        assert {a["score"] for a in asked.json()} == {2.0}
        if wrap is stamped:
            assert learned.headers["x-seen"] == "/v1/models/m/learn"
        if wrap is zipped:
            assert asked.headers["content-encoding"] == "gzip"
        for answer, status in (
            (client.post(f"{model}/learn", json={"x": {"a": None}, "y": True}), 422),
            (client.post(f"{model}/learn", content=b"{"), 400),
            (client.post(f"{model}x/learn", json={"x": {}, "y": True}), 404),
            (client.get(f"{model}/learn"), 405),
            (client.post(f"{model}/forget"), 404),
            (client.put(model, json={}), 422),
        ):
            check_problem(answer, status)
        allowed = client.delete(f"{model}/learn").headers["allow"]
        assert allowed == "POST"
        assert client.get(f"{at}/readyz").status_code == 200
        assert client.get(f"{at}/openapi.json").status_code == 200
        assert client.get(model).json()["events"] == 1


def test_hanging_up_behind_a_middleware_cancels_no_commit(
    own_server: RedisServer, proxy: Proxy
) -> None:
    with Service(proxy.url, wrap=stamped, append_timeout_ms=10_000) as service:
        with service.client() as client:
            client.put("/v1/models/m", json=PERCEPTRON)
            client.post("/v1/models/m/learn", json={"x": {}, "y": True, "id": "first"})
        proxy.delay_s = 0.05
        acknowledged = {"first"}
        for n in range(40):
            body = json.dumps({"x": {"a": n}, "y": n % 2 == 0, "id": f"e{n}"}).encode()
            with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
                connection.sendall(post_bytes("/v1/models/m/learn", body))
                if n % 4 == 0:
                    assert read_answer(connection).status == 200
                    acknowledged.add(f"e{n}")
        proxy.delay_s = 0.0
        with service.client() as client, own_server.client() as store:
            logged = set(fold_log(store, "m", hinged.Perceptron()).counted_ids)
            assert acknowledged <= logged
            for n in range(40):
                event = {"x": {"a": n}, "y": n % 2 == 0, "id": f"e{n}"}
                client.post("/v1/models/m/learn", json=event)
            folded = fold_log(store, "m", hinged.Perceptron())
            assert sorted(folded.counted_ids) == sorted({f"e{n}" for n in range(40)} | {"first"})
            assert client.get("/v1/models/m").json()["events"] == 41
            weights = client.get("/v1/models/m/weights").json()["weights"]
            assert weights == folded.weights
