"""OpenTelemetry spans of requests, appends, catch-ups and snapshots.

The standard `OTEL_…` variables turn them on; without these OpenTelemetry is not imported.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from starlette.types import Message, Receive, Scope, Send

from hinged_service.telemetry.request_context import template

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

__all__ = ["Tracing", "configured"]

logger = logging.getLogger(__name__)

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_LEFT_S = 2.0

Call = Callable[[Scope, Receive, Send], Awaitable[None]]


def configured(variables: Mapping[str, str]) -> Tracing | None:
    """Return the maker of spans; `None` if the environment does not ask for any.

    Spans go by OTLP over HTTP, by `OTEL_EXPORTER_OTLP_…`; the default of `OTEL_SERVICE_NAME`
    is `hinged`.
    """
    if variables.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    kind = variables.get("OTEL_TRACES_EXPORTER", "")
    if kind not in ("", "otlp") or not any(variables.get(name) for name in _ENDPOINTS):
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        logger.warning(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set, but there will be no traces: "
            "pip install 'hinged[otel]', or set OTEL_SDK_DISABLED=true."
        )
        return None
    named = "OTEL_SERVICE_NAME" in variables or "service.name" in variables.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    resource = Resource.create({} if named else {"service.name": "hinged"})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    exporter = OTLPSpanExporter()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return Tracing(provider, exporter.shutdown)


class Tracing:
    """Maker of spans.

    Parameters
    ----------
    provider
        Takes them.
    give_up
        Ends the sending of spans that are not taken.

    """

    def __init__(self, provider: TracerProvider, give_up: Callable[[], None] | None = None) -> None:
        from opentelemetry import context, trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider = provider
        self._give_up = give_up
        self._tracer = provider.get_tracer("hinged_service")
        self._root = context.Context()
        self._extract = TraceContextTextMapPropagator().extract
        self._kind = trace.SpanKind.SERVER
        self._error = trace.StatusCode.ERROR

    def close(self) -> None:
        """Send the remaining spans, for a few seconds at most."""
        timer = threading.Timer(_LEFT_S, self._give_up) if self._give_up is not None else None
        if timer is not None:
            timer.daemon = True
            timer.start()
        self._provider.shutdown()
        if timer is not None:
            timer.cancel()

    @contextlib.contextmanager
    def span(
        self, name: str, model: str, events: int | None = None, root: bool = False
    ) -> Iterator[Span]:
        """Make a span of work on a model; `root` if it belongs to no request."""
        attributes: dict[str, str | int] = {"hinged.model": model}
        if events is not None:
            attributes["hinged.events"] = events
        with self._tracer.start_as_current_span(
            name,
            self._root if root else None,
            attributes=attributes,
            record_exception=False,  # its message may quote an event
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except BaseException:
                span.set_status(self._error)
                raise

    async def request(self, call: Call, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request by `call` under a span, which continues the client's `traceparent`."""
        method = scope["method"]
        carrier = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in scope["headers"]
            if name in (b"traceparent", b"tracestate")
        }
        with self._tracer.start_as_current_span(
            method,
            self._extract(carrier, self._root),
            kind=self._kind,
            attributes={"http.request.method": method},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:

            async def sending(message: Message) -> None:
                if message["type"] == "http.response.start":
                    status: int = message["status"]
                    span.set_attribute("http.response.status_code", status)
                    if status >= 500:
                        span.set_status(self._error)
                await send(message)

            try:
                await call(scope, receive, sending)
            finally:
                route = template(scope)
                span.update_name(f"{method} {route}")
                span.set_attribute("http.route", route)
                model: Any = scope.get("path_params", {}).get("model")
                if model is not None:
                    span.set_attribute("hinged.model", model)
