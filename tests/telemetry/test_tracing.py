"""OpenTelemetry spans: of whole requests, of what is done for them, and none unless asked for."""

import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from hinged_service.telemetry.tracing import Tracing, configured
from tests.support.processes import wait_until
from tests.support.proxy import Proxy
from tests.support.running import serving
from tests.support.service import Service

SPEC = {"learner": {"type": "perceptron"}}
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = {"traceparent": f"00-{TRACE}-{PARENT}-01"}


class Traced(NamedTuple):
    client: httpx.Client
    exporter: InMemorySpanExporter

    def spans(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        wait_until(lambda: bool(self.spans(name)), 30)
        (span,) = self.spans(name)
        return span


def _traced(service: Service) -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    service.app.observer.tracing = Tracing(provider)  # type: ignore[attr-defined]
    return exporter


@pytest.fixture
def traced(redis_url: str) -> Iterator[Traced]:
    often: dict[str, Any] = {"max_staleness_ms": 0, "snapshot_every_ms": 1_000}
    with Service(redis_url, **often) as service, service.client() as client:
        client.put("/v1/models/m", json=SPEC)
        client.post("/v1/models/m/learn", json={"x": {"a": 1}, "y": True})
        yield Traced(client, _traced(service))


def attributes(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


def test_learning_goes_on_with_the_callers_trace(traced: Traced) -> None:
    events = [{"x": {"secret": 1}, "y": True, "id": "hidden"}, {"x": {"a": 1}, "y": True}]
    answer = traced.client.post("/v1/models/m/learn", json=events, headers=TRACEPARENT)
    request = traced.one("POST /v1/models/{model}/learn")
    assert request.kind is SpanKind.SERVER
    assert request.parent is not None
    assert (request.context.trace_id, request.parent.span_id) == (int(TRACE, 16), int(PARENT, 16))
    assert attributes(request) == {
        "http.request.method": "POST",
        "http.route": "/v1/models/{model}/learn",
        "http.response.status_code": 200,
        "hinged.model": "m",
    }
    append = traced.one("append")
    assert append.parent is not None
    assert append.parent.span_id == request.context.span_id
    assert attributes(append) == {
        "hinged.model": "m",
        "hinged.events": 2,
        "hinged.position": answer.json()[0]["position"],
    }
    snapshot = traced.one("snapshot")
    assert snapshot.parent is None
    assert attributes(snapshot)["hinged.model"] == "m"
    exported = str([span.to_json() for span in traced.exporter.get_finished_spans()])
    assert "secret" not in exported
    assert "hidden" not in exported


def test_a_prediction_that_reads_the_log(traced: Traced) -> None:
    answer = traced.client.post("/v1/models/m/predict", json={"x": {"a": 1}})
    request = traced.one("POST /v1/models/{model}/predict")
    assert request.parent is None
    read = traced.one("catch up")
    assert read.context.trace_id == request.context.trace_id
    assert attributes(read) == {"hinged.model": "m", "hinged.position": answer.json()["position"]}


def test_names_of_spans_are_templates(traced: Traced) -> None:
    traced.client.get("/v1/models/made-up")
    traced.client.get("/made/up")
    found = {span.name: attributes(span) for span in traced.exporter.get_finished_spans()}
    assert found["GET /v1/models/{model}"]["http.response.status_code"] == 404
    assert found["GET (other)"]["http.response.status_code"] == 404
    assert len(found) == 2


def test_failures_are_marked_and_quote_nothing(proxy: Proxy) -> None:
    service = Service(proxy.url, append_timeout_ms=100)
    with service, service.client() as client:
        client.put("/v1/models/m", json=SPEC)
        event = {"x": {"a": 1}, "y": True}
        wait_until(lambda: client.post("/v1/models/m/learn", json=event).is_success)
        traced = Traced(client, _traced(service))
        proxy.refuse = True
        proxy.cut()
        answer = client.post("/v1/models/m/learn", json={"x": {"secret": 1}, "y": True})
        assert answer.status_code == 503
        for name in ("POST /v1/models/{model}/learn", "append"):
            span = traced.one(name)
            assert span.status.status_code is StatusCode.ERROR
            assert span.status.description is None
            assert not span.events


def test_off_unless_asked_for() -> None:
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
    assert configured({}) is None
    assert configured({"OTEL_SERVICE_NAME": "mine"}) is None
    assert configured(endpoint | {"OTEL_SDK_DISABLED": "true"}) is None
    assert configured(endpoint | {"OTEL_TRACES_EXPORTER": "none"}) is None
    code = (
        "import sys; from hinged_service.telemetry import tracing, observer\n"
        "assert tracing.configured({}) is None\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_without_the_extra_it_serves_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    assert configured({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}) is None
    assert "pip install 'hinged[otel]'" in caplog.text


def test_spans_reach_a_collector(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[tuple[str, bytes]] = []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{collector.server_port}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        with serving(redis_url) as client:
            client.get("/healthz")
        collector.shutdown()
    assert {path for path, _ in got} == {"/v1/traces"}
    sent = b"".join(body for _, body in got)
    assert b"GET /healthz" in sent
    assert b"hinged" in sent
