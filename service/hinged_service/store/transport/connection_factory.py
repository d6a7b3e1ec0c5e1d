"""Connections to the servers of an address."""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import Mapping
from typing import Any

from redis.asyncio.connection import (
    AbstractConnection,
    Connection,
    RedisSSLContext,
    SSLConnection,
    UnixDomainSocketConnection,
)
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from hinged_service.errors import StartupError
from hinged_service.store.transport.address import Address, Place
from hinged_service.store.transport.shared_connection import SharedConnection

__all__ = ["ConnectionFactory"]


class ConnectionFactory:
    """Maker of connections, which repeat nothing by themselves.

    Parameters
    ----------
    address
        Protocol and credentials.
    timeout_s
        Longest to connect, in seconds.
    login
        Database, user and password; those of the address if left out.

    Raises
    ------
    StartupError
        If the files for TLS cannot be used.

    """

    def __init__(
        self, address: Address, timeout_s: float, login: Mapping[str, Any] | None = None
    ) -> None:
        self._path = address.path
        self._login = address.login if login is None else login
        self._timeout_s = timeout_s / 2
        self._options: dict[str, Any] = {
            **self._login,
            **address.files,
            "socket_timeout": None,  # callers bound the whole; a second bound costs 20 µs a call
            "socket_connect_timeout": timeout_s,
            "retry": Retry(NoBackoff(), 0),
            "protocol": 2,
            "driver_info": None,  # a greeting that a user of few rights may not send
        }
        self._tls: RedisSSLContext | None = None
        if address.tls:
            self._tls = SSLConnection(**self._options).ssl_context
            try:
                self._tls.get()
            except (OSError, ssl.SSLError) as error:
                raise StartupError(
                    f"The files for TLS that the Redis URL names cannot be used: {error}."
                ) from error

    async def opened(self, place: Place) -> AbstractConnection:
        """Return a new connection to a host and port, or to the address's unix socket."""
        connection: AbstractConnection
        if self._path:
            connection = UnixDomainSocketConnection(path=self._path, **self._options)
        elif self._tls is not None:
            connection = SSLConnection(host=place[0], port=place[1], **self._options)
            connection.ssl_context = self._tls  # read from its files once
        else:
            connection = Connection(host=place[0], port=place[1], **self._options)
        await connection.connect()  # type: ignore[no-untyped-call]
        return connection

    async def shared(self, place: Place) -> SharedConnection:
        """Return a new connection to the same that callers share."""
        make = functools.partial(SharedConnection, self._timeout_s)
        loop = asyncio.get_running_loop()
        if self._path:
            _, shared = await loop.create_unix_connection(make, self._path)
        else:
            tls = None if self._tls is None else self._tls.get()
            _, shared = await loop.create_connection(make, *place, ssl=tls)
        try:
            await shared.greet(self._login)
        except BaseException:
            shared.cut()
            raise
        return shared
