"""Listening sockets."""

from __future__ import annotations

import ipaddress
import socket

from hinged_service.errors import StartupError

__all__ = ["bind", "is_loopback"]


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bind(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address.

    Raises
    ------
    StartupError
        The address cannot be had.

    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except BaseException:
            listener.close()
            raise
    except OSError as error:
        raise StartupError(
            f"Cannot listen on {host}, port {port}: {error.strerror}. "
            "Choose another with --host and --port; --port 0 takes a free one."
        ) from error
    return listener
