"""Refusals of an operator's code when a worker starts, in plain words."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from river import compose, feature_extraction, preprocessing

from hinged_service.errors import StartupError
from hinged_service.river_support import custom
from hinged_service.river_support.custom import patches
from hinged_service.river_support.custom.registry import served
from tests.river_support.custom.pipelines import mails

HEAD = """
import random, time
from river import (
    anomaly, compose, ensemble, feature_extraction, linear_model, multiclass, naive_bayes,
    preprocessing, stats, tree,
)
import hinged
from hinged_service.custom import CustomModel
from river.linear_model import LogisticRegression

LETTERS = "abcdefgh"
MIXED = [({"a": float(i), "t": LETTERS[i % 8]}, i % 2 == 0) for i in range(40)]

class Own(LogisticRegression):
    pass

count = iter(range(1, 10))
"""

Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Write]:
    """Write a file of models; before and afterwards no model is served."""
    custom.install(None)

    def file(text: str) -> str:
        path = tmp_path / "my_models.py"
        path.write_text(text)
        return str(path)

    yield file
    custom.install(None)


def one_model(build: str, more: str = "") -> str:
    return HEAD + f"def models():\n    return {{'mine': CustomModel(lambda: {build}, '1'{more})}}\n"


@pytest.mark.parametrize(
    ("build", "more", "message"),
    [
        (
            "preprocessing.MinMaxScaler() | LogisticRegression()",
            "",
            "prediction changes it.*MinMaxS",
        ),
        (
            "preprocessing.MaxAbsScaler() | LogisticRegression()",
            "",
            "prediction changes it.*MaxAbsS",
        ),
        (
            "(preprocessing.StandardScaler() + preprocessing.RobustScaler()) | hinged.AROW()",
            "",
            r"changes it: river.preprocessing.scale.RobustScaler in TransformerUnion in Pipeline\.",
        ),
        (
            "feature_extraction.RBFSampler(seed=1) | LogisticRegression()",
            "",
            "prediction changes it.*RBFSampler",
        ),
        ("compose.FuncTransformer(dict) | LogisticRegression()", "", "FuncTransformer cannot be"),
        ("(lambda x: x) | LogisticRegression()", "", "FuncTransformer cannot be stored"),
        (
            "feature_extraction.BagOfWords('t', preprocessor=lambda x: x) | LogisticRegression()",
            ", MIXED",
            "the function .*lambda.* cannot be stored",
        ),
        ("Own()", "", "hinged_models.my_models.Own cannot be stored.*closed list"),
        (
            "LogisticRegression(l2=next(count) / 10)",
            "",
            "does not make the same every time.*LogisticRegression.*seed",
        ),
        (
            "ensemble.BaggingClassifier(LogisticRegression(), 3)",
            "",
            "BaggingClassifier.*seed",
        ),
        (
            "multiclass.OneVsOneClassifier(LogisticRegression())",
            "",
            "OneVsOneClassifier goes through a set.*OneVsRestClassifier",
        ),
        (
            "LogisticRegression(l2=hash('text') % 1_000_003 / 1e9)",
            "",
            "another process.*LogisticRegression.*set, whose order differs",
        ),
        ("preprocessing.StandardScaler()", "", "ends in a StandardScaler, which is not"),
        ("dict()", "", "makes a dict"),
        ("1 / 0", "", r"build\(\) fails: ZeroDivisionError.*my_models.py, line"),
        ("LogisticRegression()", ", [({'a': 'text'}, True)]", "cannot learn its sample: event 0"),
        (
            "feature_extraction.BagOfWords(on='t') | LogisticRegression()",
            "",
            r"six made-up numbers \(it has no sample\): event 0 raises .*Give CustomModel a sample",
        ),
        ("LogisticRegression()", ", [({'a': 1.0}, 'spam')]", "event 0 raises InvalidEvent"),
    ],
)
def test_a_model_that_would_break_a_promise_is_refused_by_the_name_of_its_type(
    write: Write, build: str, more: str, message: str
) -> None:
    with pytest.raises(
        StartupError, match=f"(?s)custom model 'mine' cannot be served: .*{message}"
    ):
        custom.install(write(one_model(build, more)))
    assert not served()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def models(:\n", "cannot be loaded: SyntaxError.*line 1"),
        ("\nimport nothing_like_it\n", r"ModuleNotFoundError.*\(.*my_models.py, line 2\)"),
        ("raise SystemExit(3)\n", "cannot be loaded: SystemExit"),
        ("pass\n", "has no function 'models'"),
        ("models = 3\n", "has no function 'models'"),
        ("def models():\n    return 3\n", "must return a dict"),
        ("def models():\n    return {'a': 3}\n", "must return a dict"),
        ("def models():\n    return nobody\n", r"models\(\) fails: NameError.*line 2"),
        (
            HEAD + "def models():\n    return {'a': CustomModel(3, '1')}\n",
            "TypeError: build must be a function",
        ),
        (
            HEAD + "def models():\n    return {'a': CustomModel(dict, 1)}\n",
            "TypeError: version must be text, not 1",
        ),
        (
            HEAD + "def models():\n    return {'a': CustomModel(dict, '')}\n",
            "ValueError: version must have 1 to 64",
        ),
        (
            HEAD + "def models():\n    return {'a': CustomModel(dict, '1', [{'x': 1.0}])}\n",
            "TypeError: sample must be pairs",
        ),
    ],
)
def test_code_that_fails_is_named_with_the_place(write: Write, text: str, message: str) -> None:
    with pytest.raises(StartupError, match=f"my_models.py.*{message}"):
        custom.install(write(text))


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    for setting, message in (
        (str(tmp_path / "none.py"), "There is no file .*none.py"),
        ("no_such_module:models", "no_such_module:models cannot be loaded: ModuleNotFoundError"),
        ("json:nothing", "json:nothing has no function 'nothing'"),
        ("models", "neither a file that ends with .py nor module:function"),
    ):
        with pytest.raises(StartupError, match=message):
            custom.install(setting)


def test_a_module_s_function_and_several_sources(write: Write) -> None:
    module = "tests.river_support.custom.pipelines:models"
    custom.install(f"{module}, {write(one_model('hinged.AROW()'))}")
    assert {"mine", "arow", "logistic"} <= served().keys()
    with pytest.raises(StartupError, match="two custom models 'mine'"):
        custom.install(f"{write(one_model('hinged.AROW()'))},{write(one_model('hinged.AROW()'))}")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_process_ends_and_says_why_without_a_traceback(write: Write, workers: str) -> None:
    file = write(one_model("preprocessing.MinMaxScaler() | LogisticRegression()"))
    command = [sys.executable, "-m", "hinged_service.cli.main", "serve", "--port", "0"]
    ended = subprocess.run(
        [*command, "--workers", workers, "--models", file],
        env=os.environ | {"HINGED_REDIS_URL": "redis://127.0.0.1:1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 1
    assert "The custom model 'mine' cannot be served: a prediction changes it" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_mended_transformers_answer_as_river_s_do(write: Write) -> None:
    """On events whose one selected feature leaves no order; with names never learned."""
    river = patches._scaled
    scalers: list[Any] = [
        preprocessing.StandardScaler(),
        preprocessing.StandardScaler(with_std=False),
        preprocessing.StandardScaler(window_size=5),
        preprocessing.StandardScaler(with_std=False, window_size=5),
    ]
    for scaler in scalers:
        for x, _ in mails(30):
            numbers: dict[Any, Any] = {n: v for n, v in x.items() if n != "text"}
            asked = {**numbers, "new": 3.0}
            before = vars(copy.deepcopy(scaler))
            assert patches._scale(scaler, asked) == river(copy.deepcopy(scaler), asked)
            assert scaler.means.keys() == before["means"].keys()
            scaler.learn_one(numbers)
    code = (
        "from river import feature_extraction as f\n"
        "from tests.river_support.custom.pipelines import mails\n"
        "t = f.TFIDF(on='text')\n"
        "for x, _ in mails(30): t.learn_one(x)\n"
        "print(sorted(t.dfs.items()), t.n)"
    )
    theirs = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    patches.mend()
    tfidf: Any = feature_extraction.TFIDF(on="text")
    for x, _ in mails(30):
        tfidf.learn_one(x)
    assert f"{sorted(tfidf.dfs.items())} {tfidf.n}" == theirs.stdout.strip()
    select: Any = compose.Select("b", "a")
    assert list(select.transform_one({"a": 1, "c": 2, "b": 3}).items()) == [("a", 1), ("b", 3)]
    with pytest.raises(KeyError, match="'b'"):
        select.transform_one({"a": 1})
