"""Everything at random: once, in order, none lost of what survives, replicas = snapshot = fold."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest

from tests.support.chaos import Chaos
from tests.support.redis_server import RedisServer

SECONDS = float(os.environ.get("HINGED_TEST_CHAOS_S", "20"))
SEED = int(os.environ.get("HINGED_TEST_SEED", random.SystemRandom().randrange(10**9)))


@pytest.mark.slow
@pytest.mark.timeout(300 + 5 * SECONDS)
def test_trouble_of_all_kinds_at_random(own_server: RedisServer, tmp_path: Path) -> None:
    """HINGED_TEST_CHAOS_S says for how long, HINGED_TEST_SEED which trouble."""
    own_server.kill()
    own_server.fsync = "always"  # so that a killed server has all that it acknowledged
    own_server.start()
    print(f"HINGED_TEST_SEED={SEED}")
    chaos = Chaos(own_server, tmp_path / "copy", SEED)
    asyncio.run(chaos.run(SECONDS, rounds=max(1, round(SECONDS / 5))))
    print(dict(sorted(chaos.happened.items())))
    assert chaos.happened["learn"] > 20 * SECONDS, "trouble is all there was"
