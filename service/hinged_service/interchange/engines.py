"""Engines that learn the parts of a back-fill side by side."""

from __future__ import annotations

import importlib
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

from hinged_service.interchange.back_fill import Part, Spread

__all__ = ["EngineFailed", "engine"]


class EngineFailed(Exception):
    """The engine is not installed, or lost a worker; the message states the remedy."""


@contextmanager
def _on_processes(workers: int | None, address: str | None) -> Iterator[Spread]:
    """Yield an engine of processes of this machine."""
    if address is not None:
        raise EngineFailed("Processes run on this machine: leave out --address.")
    context = multiprocessing.get_context("spawn")  # a fork would take threads' locks along
    pool = ProcessPoolExecutor(workers, mp_context=context)

    def spread(learn: Callable[[str], Part], paths: Sequence[str]) -> Iterator[Part]:
        try:
            for future in as_completed([pool.submit(learn, path) for path in paths]):
                yield future.result()
        except BrokenProcessPool:
            raise EngineFailed(
                "A process ended too early, perhaps because memory ran out: give fewer --workers "
                "or smaller files."
            ) from None

    try:
        yield spread
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _on_dask(workers: int | None, address: str | None) -> Iterator[Spread]:
    """Yield an engine of a Dask cluster, or of Dask's processes on this machine."""
    dask = _imported("dask")
    if address is None:
        options: dict[str, Any] = {"scheduler": "processes", "num_workers": workers}

        def spread(learn: Callable[[str], Part], paths: Sequence[str]) -> Iterator[Part]:
            yield from dask.compute(*[dask.delayed(learn)(path) for path in paths], **options)

        yield spread
        return
    distributed = _imported("distributed")
    with distributed.Client(address) as client:

        def spread_out(learn: Callable[[str], Part], paths: Sequence[str]) -> Iterator[Part]:
            futures = [client.submit(learn, path, pure=False) for path in paths]
            for future in distributed.as_completed(futures):
                yield future.result()

        yield spread_out


@contextmanager
def _on_ray(workers: int | None, address: str | None) -> Iterator[Spread]:
    """Yield an engine of a Ray cluster, or of Ray's processes on this machine."""
    ray = _imported("ray")
    local: dict[str, Any] = {"num_cpus": workers, "include_dashboard": False}
    ray.init(address=address, log_to_driver=False, **({} if address else local))

    def spread(learn: Callable[[str], Part], paths: Sequence[str]) -> Iterator[Part]:
        task, shared = ray.remote(_apply), ray.put(learn)
        waiting = [task.remote(shared, path) for path in paths]
        while waiting:
            done, waiting = ray.wait(waiting)
            yield from ray.get(done)

    try:
        yield spread
    finally:
        ray.shutdown()


def _apply(learn: Callable[[str], Part], path: str) -> Part:
    return learn(path)


def _imported(package: str) -> Any:  # noqa: ANN401 - a module, with types or without
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError:
        raise EngineFailed(f"{package} is not installed: pip install {package}.") from None


def engine(name: str, workers: int | None, address: str | None) -> AbstractContextManager[Spread]:
    """Return an engine by its name, with so many workers, or at an address.

    Entered, it raises `EngineFailed` if it is not installed.
    """
    return _ENGINES[name](workers, address)


_ENGINES: Final[dict[str, Callable[[int | None, str | None], AbstractContextManager[Spread]]]] = {
    "processes": _on_processes,
    "dask": _on_dask,
    "ray": _on_ray,
}
