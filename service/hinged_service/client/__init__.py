"""The client of the service: blocking, for asyncio, and as a classifier of River."""

from hinged_service.client.asynchronous import AsyncClient
from hinged_service.client.errors import (
    BadAnswer,
    Busy,
    Conflict,
    Expired,
    Fault,
    HingedError,
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
from hinged_service.client.remote import RemoteClassifier
from hinged_service.client.results import (
    Duplicate,
    ExpertWeights,
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
    "AsyncClient",
    "BadAnswer",
    "Busy",
    "Client",
    "Conflict",
    "Duplicate",
    "Event",
    "ExpertWeights",
    "Expired",
    "Fault",
    "HingedError",
    "Invalid",
    "Label",
    "Learned",
    "LinearWeights",
    "Malformed",
    "ModelInfo",
    "ModelListed",
    "NotAllowed",
    "NotFound",
    "Outcome",
    "Prediction",
    "RemoteClassifier",
    "Retries",
    "TooLarge",
    "Unavailable",
    "Unreachable",
    "Weights",
    "WrongMediaType",
]
