"""Run a source for `hinged ingest …`: open the model, feed it, report, end by signals."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import ValidationError

from hinged_service.engine.lifecycle import ModelLifecycle
from hinged_service.engine.registry import ModelRegistry
from hinged_service.errors import ServiceError, StartupError
from hinged_service.ingest.progress import Reporter
from hinged_service.ingest.signals import Stop, Stopped
from hinged_service.ingest.target import BAD_USAGE, FAILED, UNSAVED, Failed, Target
from hinged_service.ingest.writer import Feeder, Tally
from hinged_service.model.spec import ModelSpec
from hinged_service.river_support import custom
from hinged_service.server.memory import collect_rarely, keep_freed
from hinged_service.settings import Settings
from hinged_service.store.configured_redis import left_unsaved, opened
from hinged_service.store.transport.address import public_address
from hinged_service.wire.encodings import other_encoding, without_marks
from hinged_service.wire.strict_model import reason_of, setting_faults

__all__ = ["Bring", "run"]

Bring = Callable[[Feeder, Reporter], Awaitable[dict[str, Any]]]
"""A source: calls `feeder.ready` when it can be read, then feeds until it ends or `Stopped` is
raised; returns the additions to the summary."""

_SIGNAL = 128


def run(
    target: Target,
    bring: Bring,
    go_on: str,
    endless: bool = False,
    wait_s: float | None = None,
) -> int:
    """Let a source bring its events until it ends, fails or is stopped.

    `go_on` is written when it is stopped; `endless` if that is the way in which it ends. Servers
    that do not answer are waited for `wait_s` seconds, without a limit if that is `None`.

    Returns
    -------
    The exit code: 0 done, 1 failed or more records bad than allowed, 2 wrong options, 128 and
    the signal's number if stopped before the end; 8 if acknowledged events are not on disk.
    """
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    return asyncio.run(_run(target, bring, go_on, endless, wait_s))


async def _run(
    target: Target, bring: Bring, go_on: str, endless: bool, wait_s: float | None
) -> int:
    keep_freed()
    collect_rarely()
    stop = Stop()
    stop.listen()
    tally = Tally()
    with Reporter(tally) as reporter:
        state, code, more = "failed", FAILED, dict[str, Any]()
        settings: Settings | None = None
        feeder: Feeder | None = None
        try:
            spec, settings = _spec(target), _settings(target)
            custom.install(settings.models)
            async with opened(settings) as connection:
                registry = ModelRegistry(connection, settings)
                lifecycle = ModelLifecycle(registry, settings)
                feeder = Feeder(registry, lifecycle, target.model, stop, reporter.write_line, tally)
                feeder.spec = spec
                feeder.labels_only = target.labels_only
                feeder.wait_s = wait_s
                feeder.address = public_address(settings.redis_url or "")
                try:
                    if spec is None:  # a model that is not made here must exist
                        await feeder.ready()
                    more = await bring(feeder, reporter)
                    state, code = "done", 0
                finally:
                    await feeder.aclose()
                    await registry.aclose()
        except Stopped:
            state, code = "stopped", 0 if endless else _SIGNAL + (stop.signal or 0)
            reporter.write_line(go_on)
        except Failed as error:
            code = error.code
            reporter.write_line(str(error))
        except (ServiceError, StartupError) as error:
            reporter.write_line(str(error))
    if feeder is not None and feeder.predictions is not None:
        more |= {"predicted": feeder.predictions.written, "unpredicted": feeder.predictions.lost}
        if feeder.predictions.lost:
            reporter.write_line(
                f"NOT PREDICTED: {feeder.predictions.lost:,} events of a killed run are learned, "
                "but no state is left from which their predictions could be made."
            )
            state, code = ("incomplete", FAILED) if state == "done" else (state, code)
    if state == "done" and not target.max_bad.covers(tally.bad, tally.total):
        state, code = "incomplete", FAILED
    if settings is not None and left_unsaved(settings):
        code = UNSAVED
    reporter.losses(target.max_bad)
    reporter.summary(target.model, state, target.as_json, max_bad=target.max_bad.text, **more)
    return code


def _spec(target: Target) -> ModelSpec | None:
    """Return the spec of the model to make, `None` if it must be there."""
    if target.create is None and target.learner is None:
        return None
    if target.create is not None and target.learner is not None:
        raise Failed("Give --create or --learner, not both.", BAD_USAGE)
    try:
        if target.create is None:
            return ModelSpec.model_validate_json(json.dumps({"learner": {"type": target.learner}}))
        text = target.create.read_bytes()
        if (encoding := other_encoding(text)) is not None:
            raise Failed(f"The spec is {encoding}: write it in UTF-8.", BAD_USAGE)
        return ModelSpec.model_validate_json(without_marks(text))
    except OSError as error:
        raise Failed(f"The spec cannot be read: {error}.", BAD_USAGE) from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise Failed(f"The spec is wrong: {where} {reason_of(first)}", BAD_USAGE) from None


def _settings(target: Target) -> Settings:
    """Return the settings of the environment, overridden by the options."""
    named: dict[str, Any] = {"redis_url": target.redis_url, "data_dir": target.data_dir}
    try:
        return Settings(**{name: value for name, value in named.items() if value is not None})
    except ValidationError as error:
        raise Failed("\n".join(setting_faults(error)), BAD_USAGE) from None
