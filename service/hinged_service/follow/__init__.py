"""Models of the service in other processes: replicas that follow the log and only read."""

from hinged_service.follow.follower import AsyncFollower, Follower, follow, follow_async

__all__ = ["AsyncFollower", "Follower", "follow", "follow_async"]
