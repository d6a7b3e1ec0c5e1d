"""`History.plot` draws its columns; without Matplotlib it names what to install."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import hinged
from hinged import training

ROWS = [({"a": 1.0}, True), ({"a": -1.0}, False), ({"a": 2.0}, False)]


def test_a_history_is_drawn() -> None:
    pytest.importorskip("matplotlib")
    history = training.fit(hinged.Perceptron(), ROWS, epochs=4)
    axes = history.plot()
    lines = {line.get_label(): np.asarray(line.get_ydata()).tolist() for line in axes.lines}
    assert lines == {"mistakes": history.column("mistakes"), "updates": history.column("updates")}
    assert np.asarray(axes.lines[0].get_xdata()).tolist() == [1, 2, 3, 4]
    assert (axes.get_xlabel(), "epochs" in axes.get_title()) == ("epoch", True)
    held = training.fit(hinged.Perceptron(), ROWS, epochs=2, held_out=ROWS)
    assert [line.get_label() for line in held.plot().lines][2] == "held out errors"
    assert held.plot("hinge_loss", axes=axes) is axes
    with pytest.raises(hinged.InvalidParameter, match="nothing"):
        held.plot("nothing")


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'hinged\[plot\]'"):
        training.History().plot()
