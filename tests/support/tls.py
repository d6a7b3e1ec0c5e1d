"""A server that speaks TLS only, with certificates made for it on the spot."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import redis
import trustme

from tests.support.redis_server import RedisServer


def speaks_tls(binary: str) -> bool:
    """Return whether a server was built with TLS: only such a one misses a certificate."""
    tried = subprocess.run(
        [binary, "--port", "0", "--tls-port", "1"], capture_output=True, timeout=30, check=False
    )
    return b"No tls-cert-file" in tried.stdout + tried.stderr


class Certificates:
    """An authority, a server's certificate and a client's, as files.

    Parameters
    ----------
    directory
        Where the files go.
    names
        For whom the server's certificate is.

    """

    def __init__(self, directory: Path, *names: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.authority = directory / "ca.pem"
        self.key = directory / "server.key"
        self.certificate = directory / "server.pem"
        self.client = directory / "client.pem"
        authority = trustme.CA()
        authority.cert_pem.write_to_path(self.authority)
        server = authority.issue_cert(*names)
        server.private_key_pem.write_to_path(self.key)
        server.cert_chain_pems[0].write_to_path(self.certificate)
        authority.issue_cert("client@test").private_key_and_cert_chain_pem.write_to_path(
            self.client
        )

    @property
    def query(self) -> str:
        """The part of an address that names a client's files."""
        own = quote(str(self.client))
        return f"ssl_ca_certs={quote(str(self.authority))}&ssl_certfile={own}&ssl_keyfile={own}"

    def options(self, port: int) -> tuple[str, ...]:
        """Return the options of a server that listens on a TLS port only."""
        return (
            *("--port", "0", "--tls-port", str(port)),
            *("--tls-cert-file", str(self.certificate), "--tls-key-file", str(self.key)),
            *("--tls-ca-cert-file", str(self.authority), "--tls-auth-clients", "yes"),
            *("--tls-replication", "yes"),
        )

    def connecting(self) -> dict[str, Any]:
        """Return what a plain client needs to be let in."""
        return {
            "ssl": True,
            "ssl_check_hostname": False,
            "ssl_ca_certs": str(self.authority),
            "ssl_certfile": str(self.client),
            "ssl_keyfile": str(self.client),
        }


class TlsServer(RedisServer):
    """A server on a TLS port that wants a client's certificate."""

    def __init__(self, directory: Path, binary: str, name: str = "127.0.0.1") -> None:
        super().__init__(directory, binary)
        self.certificates = Certificates(directory.parent / f"{directory.name}-tls", name)

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"rediss://127.0.0.1:{self.port}/0?{self.certificates.query}"

    def start(self, *options: str) -> None:
        """Start it and wait until it has loaded its data."""
        super().start(*self.certificates.options(self.port), *options)

    def client(self) -> redis.Redis:
        """Return a plain client for looking and meddling."""
        more = self.certificates.connecting()
        return redis.Redis(port=self.port, decode_responses=True, socket_timeout=10, **more)
