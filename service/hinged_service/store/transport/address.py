"""Address of a Redis of any topology, as `HINGED_REDIS_URL` gives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from hinged_service.errors import StartupError

__all__ = ["Address", "Place", "parse", "public_address"]

Place = tuple[str, int]
"""Host and port."""

Shape = Literal["one", "sentinel", "cluster"]

_SHAPES: Final[Mapping[str, tuple[Shape, bool]]] = MappingProxyType(
    {
        "redis": ("one", False),
        "rediss": ("one", True),
        "unix": ("one", False),
        "redis+sentinel": ("sentinel", False),
        "rediss+sentinel": ("sentinel", True),
        "redis+cluster": ("cluster", False),
        "rediss+cluster": ("cluster", True),
    }
)
_FORMS: Final = (
    "redis://[USER:PASSWORD@]HOST:PORT[/DB], unix://[USER:PASSWORD@]/PATH, "
    "redis+sentinel://[USER:PASSWORD@]HOST:PORT,HOST:PORT/SERVICE or "
    "redis+cluster://[USER:PASSWORD@]HOST:PORT,HOST:PORT; rediss instead of redis for TLS; what "
    "is no letter or digit in user and password is written %XX"
)
_TLS_FILES: Final = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_SENTINEL: Final = ("sentinel_username", "sentinel_password")
_PORT: Final = 6379
_SENTINEL_PORT: Final = 26379


@dataclass(frozen=True, slots=True)
class Address:
    """Address of a Redis, its topology and its credentials.

    `places` are the server, the Sentinels, or some nodes of the cluster; none for a unix socket,
    which is at `path`. `service` is the Sentinels' name for the primary. The names in the logins
    and in `files`, those of TLS, are redis-py's.
    """

    shape: Shape
    tls: bool
    places: tuple[Place, ...]
    path: str = ""
    service: str = ""
    login: Mapping[str, Any] = field(default_factory=dict, repr=False)
    sentinel_login: Mapping[str, Any] = field(default_factory=dict, repr=False)
    files: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return it for people: without user, password and options."""
        if self.path:
            return self.path
        at = ",".join(f"[{h}]:{p}" if ":" in h else f"{h}:{p}" for h, p in self.places)
        return f"{at} (Sentinels of {self.service})" if self.service else at


def parse(url: str, password_file: Path | None = None) -> Address:
    """Parse an address; the file holds the password, if the address does not.

    Options that redis-py would take and the service does not are refused: some send a
    command again whose answer was lost, others let any certificate pass.

    Raises
    ------
    StartupError
        It is none, or there is no password in the file. The message quotes nothing of it:
        there may be a password in it.

    """
    scheme, _, rest = url.partition("://")
    if scheme not in _SHAPES or "#" in rest:
        raise StartupError(f"The Redis URL is wrong: it must be {_FORMS}.")
    shape, tls = _SHAPES[scheme]
    rest, _, query = rest.partition("?")
    authority, _, path = rest.partition("/")
    userinfo, _, hosts = authority.rpartition("@")
    options = _options(query, shape, tls)
    database = _database(options.pop("db", "") or (path if scheme in {"redis", "rediss"} else ""))
    sentinel_login = {
        name.removeprefix("sentinel_"): options.pop(name) for name in _SENTINEL if name in options
    }
    if scheme == "unix" and (hosts or not path):
        raise StartupError("The Redis URL is wrong: a unix socket is unix:///its/whole/path.")
    return Address(
        shape,
        tls,
        () if scheme == "unix" else _places(hosts, shape),
        f"/{unquote(path)}" if scheme == "unix" else "",
        _service(path) if shape == "sentinel" else "",
        _login(userinfo, database, password_file),
        sentinel_login,
        options,
    )


def public_address(url: str) -> str:
    """Return an address without user, password and parameters."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _login(userinfo: str, database: int, password_file: Path | None) -> dict[str, Any]:
    user, _, password = userinfo.partition(":")
    login: dict[str, Any] = {"db": database}
    if user:
        login["username"] = unquote(user)
    if password:
        login["password"] = unquote(password)
    elif password_file is not None:
        login["password"] = _read(password_file)
    return login


def _read(file: Path) -> str:
    try:
        password = file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise StartupError(f"The file of the Redis password cannot be read: {error}.") from error
    if not password:
        raise StartupError(f"The file of the Redis password, {file}, is empty.")
    return password


def _service(path: str) -> str:
    if not path:
        raise StartupError(
            "The Redis URL is wrong: after the Sentinels comes /SERVICE, the name by which they "
            "know the primary."
        )
    return unquote(path)


def _options(query: str, shape: Shape, tls: bool) -> dict[str, Any]:
    options: dict[str, Callable[[str], Any]] = {} if shape == "cluster" else {"db": str}
    if tls:
        options |= dict.fromkeys(_TLS_FILES, str) | {"ssl_check_hostname": _flag}
    if shape == "sentinel":
        options |= dict.fromkeys(_SENTINEL, str)
    found: dict[str, Any] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in options:
            raise StartupError(
                "The Redis URL is wrong: it has an unknown option. In this form you may use "
                f"{', '.join(options)}."
            )
        found[name] = options[name](value)
    return found


def _flag(value: str) -> bool:
    if (word := value.lower()) not in {"true", "false"}:
        raise StartupError("The Redis URL is wrong: ssl_check_hostname is true or false.")
    return word == "true"


def _database(value: str) -> int:
    if not value:
        return 0
    if not (value.isascii() and value.isdigit()):
        raise StartupError(
            f"The Redis URL is wrong: the database is a number; it must be {_FORMS}."
        )
    return int(value)


def _places(hosts: str, shape: Shape) -> tuple[Place, ...]:
    usual = _SENTINEL_PORT if shape == "sentinel" else _PORT
    places = []
    for one in hosts.split(","):
        host, colon, digits = one.rpartition(":")
        if not colon or one.endswith("]"):
            host, digits = one, str(usual)
        host = unquote(host.removeprefix("[").removesuffix("]"))
        if not host or not (digits.isascii() and digits.isdigit()) or not 0 < int(digits) < 65536:
            raise StartupError(
                f"The Redis URL is wrong: hosts and ports cannot be read; it must be {_FORMS}."
            )
        places.append((host, int(digits)))
    if shape == "one" and len(places) > 1:
        raise StartupError(
            "The Redis URL is wrong: several servers are a redis+cluster:// or the Sentinels of a "
            "redis+sentinel://."
        )
    return tuple(places)
