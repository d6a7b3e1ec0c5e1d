"""Losses of one scored example, as functions of its margin."""

from __future__ import annotations

__all__ = ["hinge_loss", "perceptron_loss"]


def hinge_loss(margin: float) -> float:
    """Return the hinge loss `max(0, 1 - margin)`.

    Parameters
    ----------
    margin
        `t * score` with `t` in {-1, +1}; a pure number.

    Returns
    -------
    The loss, at least 0. It bounds the mistake indicator from above: a wrong
    label means `margin <= 0`, hence a loss of 1 or more.

    References
    ----------
    Gentile, C. and Warmuth, M. K., 1998. Linear hinge loss and average margin. NIPS 11.

    Examples
    --------
    >>> hinge_loss(0.25), hinge_loss(3.0), hinge_loss(-2.0)
    (0.75, 0.0, 3.0)

    """
    return 1.0 - margin if margin < 1.0 else 0.0


def perceptron_loss(margin: float) -> float:
    """Return the perceptron loss `max(0, -margin)`, whose sub-gradient step is the perceptron's.

    Parameters
    ----------
    margin
        `t * score` with `t` in {-1, +1}; a pure number.

    Returns
    -------
    The loss: 0 for a right label, else how far the score lies on the wrong side.

    Examples
    --------
    >>> perceptron_loss(0.25), perceptron_loss(-2.0)
    (0.0, 2.0)

    """
    return -margin if margin < 0.0 else 0.0
