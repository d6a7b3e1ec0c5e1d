"""Log format of `hinged serve`: lines for people, or lines of JSON for machines."""

from __future__ import annotations

import copy
import json
import logging
from datetime import UTC, datetime
from typing import Any

from uvicorn.config import LOGGING_CONFIG

from hinged_service.errors import StartupError
from hinged_service.settings import TelemetrySettings
from hinged_service.telemetry.request_context import current, request_id

__all__ = ["JsonLines", "RareWarnings", "Rarely", "ShortStartupErrors", "log_config"]

_MODEL_CHARS = 256
_RARELY_S = 60.0
_KINDS = 100


class JsonLines(logging.Formatter):
    """One JSON object per record: time, level, logger, message, and its other fields.

    `request_id` and `model` are those of the request that the record is of, unless it names
    a model itself; `position` and `exception` come where there are any.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a line."""
        at = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        scope = current.get()
        if scope is not None:
            line["request_id"] = request_id(scope)
            model = scope.get("path_params", {}).get("model")
            if model is not None:
                line["model"] = str(model)[:_MODEL_CHARS]
        for name in ("model", "position"):
            if (value := getattr(record, name, None)) is not None:
                line[name] = str(value)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


class ShortStartupErrors(logging.Filter):
    """Filter that shortens the traceback of a `StartupError` to its message."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass, such tracebacks shortened."""
        text = record.getMessage()
        _, name, message = text.rpartition(f"{StartupError.__module__}.{StartupError.__name__}: ")
        if name and text.startswith("Traceback"):
            record.msg, record.args = message.strip(), None
        return True


class Rarely(logging.Filter):
    """Filter that lets records of one kind pass once a minute, for an exporter that fails."""

    def __init__(self) -> None:
        super().__init__()
        self._passed_s: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Let a record pass unless one like it did within the last minute."""
        kind = record.name, str(record.msg)
        if record.created - self._passed_s.get(kind, -1e9) < _RARELY_S:
            return False
        if len(self._passed_s) >= _KINDS:
            self._passed_s.clear()
        self._passed_s[kind] = record.created
        return True


class RareWarnings(Rarely):
    """Filter that lets warnings of one kind pass once a minute: bad clients repeat themselves."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let a record pass unless it is a warning like one within the last minute."""
        return record.levelno != logging.WARNING or super().filter(record)


def log_config(settings: TelemetrySettings) -> dict[str, Any]:
    """Return the set-up of logging, as `logging.config.dictConfig` takes it."""
    config: dict[str, Any] = copy.deepcopy(LOGGING_CONFIG)
    config["filters"] = {
        "short": {"()": f"{__name__}.{ShortStartupErrors.__name__}"},
        "rarely": {"()": f"{__name__}.{Rarely.__name__}"},
        "rare warnings": {"()": f"{__name__}.{RareWarnings.__name__}"},
    }
    config["loggers"]["uvicorn.error"]["filters"] = ["rare warnings"]
    config["handlers"]["default"]["filters"] = ["short"]
    config["handlers"]["traces"] = {**config["handlers"]["default"], "filters": ["rarely"]}
    if settings.log_format == "json":
        config["formatters"]["default"] = {"()": f"{__name__}.{JsonLines.__name__}"}
    level = settings.log_level.upper()
    for name in ("uvicorn", "uvicorn.error"):
        config["loggers"][name]["level"] = level
    for name in ("hinged", "hinged_service", "opentelemetry"):
        handler = "traces" if name == "opentelemetry" else "default"
        config["loggers"][name] = {"handlers": [handler], "level": level, "propagate": False}
    return config
