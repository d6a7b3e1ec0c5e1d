"""Options of the client: where they come from, which are refused, and that secrets stay so."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hinged_service.cli.main import cli
from hinged_service.ingest.kafka.client import KafkaLog
from hinged_service.ingest.kafka.options import KafkaOptions, begin_of, client_config
from hinged_service.ingest.target import Failed


def test_the_command_line_goes_before_the_environment_and_the_file(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# ours\n\nsasl.username = ann\nsasl.password=a=b\nclient.id=file\n")
    environment = {
        "HINGED_KAFKA_SASL_PASSWORD": "env",
        "HINGED_KAFKA_CONFIG_FILE": str(file),
        "HINGED_REDIS_URL": "redis://r",
    }
    assert client_config(["client.id=line"], file, environment) == {
        "sasl.username": "ann",
        "sasl.password": "env",
        "client.id": "line",
    }


@pytest.mark.parametrize(
    "key", ["enable.auto.commit", "auto.offset.reset", "group.id", "group.protocol"]
)
def test_options_that_would_break_the_promise_are_refused(key: str) -> None:
    with pytest.raises(Failed, match=f"{key} of Kafka cannot be set") as refused:
        client_config([f"{key}=x"], None, {})
    assert refused.value.code == 2


def test_an_option_without_a_value_is_refused_and_not_repeated_at_length() -> None:
    with pytest.raises(Failed, match="key=value"):
        client_config(["sasl.password"], None, {})


@pytest.mark.parametrize(
    "client",
    [
        {"no.such.option": "1"},
        {"security.protocol": "nonsense"},
        {"security.protocol": "SSL", "ssl.key.pem": "geheim", "ssl.certificate.pem": "geheim"},
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.password": "geheim",
            "sasl.mechanism": "geheim",
        },
    ],
)
def test_refusals_of_the_client_are_told_without_secrets(client: dict[str, str]) -> None:
    options = KafkaOptions("127.0.0.1:1", ("t",), "g", client=client)
    assert "geheim" not in repr(options)
    with pytest.raises(Failed) as refused:
        KafkaLog(options, print)
    assert refused.value.code == 2
    assert "geheim" not in str(refused.value)


def test_times_to_begin_at() -> None:
    assert begin_of("end") == "end"
    assert begin_of("1970-01-01T00:00:01") == 1_000
    assert begin_of("1970-01-01T01:00:01+01:00") == 1_000
    with pytest.raises(ValueError, match="yesterday"):
        begin_of("yesterday")


@pytest.mark.parametrize(
    ("words", "message"),
    [(["--from", "yesterday"], "beginning, end"), (["--id", "n"], "flat objects only")],
)
def test_wrong_words_are_told(words: list[str], message: str) -> None:
    required = ["--bootstrap", "127.0.0.1:1", "--topic", "t", "--model", "m"]
    answer = CliRunner().invoke(cli, ["ingest", "kafka", *required, *words])
    assert answer.exit_code == 2
    assert message in answer.output


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    for name in ("source", "client"):
        monkeypatch.delitem(sys.modules, f"hinged_service.ingest.kafka.{name}", raising=False)
    words = ["--bootstrap", "127.0.0.1:1", "--topic", "t", "--model", "m"]
    answer = CliRunner().invoke(cli, ["ingest", "kafka", *words])
    assert answer.exit_code == 2
    assert 'pip install "hinged[kafka]"' in answer.output
