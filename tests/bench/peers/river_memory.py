"""FastAPI and River as one would write it first: the model in memory, nothing durable."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from river import linear_model

app = FastAPI()
model: Any = linear_model.Perceptron()


class Question(BaseModel):
    """An event without its label."""

    x: dict[str, float]


class Event(Question):
    """A labelled event."""

    y: bool


class Prediction(BaseModel):
    """The predicted label and the probabilities."""

    y: bool
    proba: dict[bool, float]


class Outcome(BaseModel):
    """The prediction before learning."""

    y_pred: bool
    mistake: bool


@app.post("/predict")
async def predict(question: Question) -> Prediction:
    """Predict."""
    proba = model.predict_proba_one(question.x)
    return Prediction(y=proba[True] > 0.5, proba=proba)


@app.post("/learn")
async def learn(event: Event) -> Outcome:
    """Predict, then learn."""
    y_pred = bool(model.predict_one(event.x))
    model.learn_one(event.x, event.y)
    return Outcome(y_pred=y_pred, mistake=y_pred != event.y)
