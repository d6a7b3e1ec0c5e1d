"""The client of the service: blocking, for asyncio, and as a classifier of River."""

from hinged_service.client.asynchronous import AsyncClient
from hinged_service.client.errors import (
    BadAnswer,
    Busy,
    ClientError,
    Conflict,
    Expired,
    Fault,
    Invalid,
    Malformed,
    NotAllowed,
    NotFound,
    TooLarge,
    Unavailable,
    Unreachable,
    WrongMediaType,
)
from hinged_service.client.events import Event
from hinged_service.client.exchange import Retries
from hinged_service.client.live_results import (
    LiveCommand,
    LiveDrift,
    LiveEnd,
    LiveEvent,
    LiveMetrics,
    LiveModel,
    LiveOutcome,
    LiveSample,
)
from hinged_service.client.management_results import (
    AliasInfo,
    Checkpoint,
    Follower,
    Promoted,
    StreamInfo,
    StreamListed,
    Upgraded,
)
from hinged_service.client.remote import RemoteClassifier
from hinged_service.client.results import (
    Drift,
    Duplicate,
    ExpertWeights,
    Explanation,
    Label,
    Learned,
    LinearWeights,
    ModelInfo,
    ModelListed,
    Outcome,
    Prediction,
    Weights,
)
from hinged_service.client.sync import Client

__all__ = [
    "AliasInfo",
    "AsyncClient",
    "BadAnswer",
    "Busy",
    "Checkpoint",
    "Client",
    "ClientError",
    "Conflict",
    "Drift",
    "Duplicate",
    "Event",
    "ExpertWeights",
    "Expired",
    "Explanation",
    "Fault",
    "Follower",
    "HingedError",
    "Invalid",
    "Label",
    "Learned",
    "LinearWeights",
    "LiveCommand",
    "LiveDrift",
    "LiveEnd",
    "LiveEvent",
    "LiveMetrics",
    "LiveModel",
    "LiveOutcome",
    "LiveSample",
    "Malformed",
    "ModelInfo",
    "ModelListed",
    "NotAllowed",
    "NotFound",
    "Outcome",
    "Prediction",
    "Promoted",
    "RemoteClassifier",
    "Retries",
    "StreamInfo",
    "StreamListed",
    "TooLarge",
    "Unavailable",
    "Unreachable",
    "Upgraded",
    "Weights",
    "WrongMediaType",
]

HingedError = ClientError
"""The name of `ClientError` before the learners had an error tree of this name."""
