"""The live feed: the changes of a model, sent to all who watch it on this worker.

One hub per watched name keeps the model fresh and encodes what is folded once
for all of its subscribers. Nothing waits for a subscriber: one that is too slow is
dropped. What comes faster than people read is sampled.
"""

from __future__ import annotations

from hinged_service.insights.live_feed.feeds import Feeds
from hinged_service.insights.live_feed.subscriber import Subscriber

__all__ = ["Feeds", "Subscriber"]
