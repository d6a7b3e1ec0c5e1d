"""Reports of several workers: added up, believed or forgotten, and never taken back."""

import fcntl
import shutil
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hinged_service.errors import StartupError, Unavailable
from hinged_service.telemetry.exposition import exposed
from hinged_service.telemetry.mmap_counters import CounterFile, read_sheet
from hinged_service.telemetry.multiprocess import Gathered
from hinged_service.telemetry.observer import Observer
from hinged_service.telemetry.shared_directory import shared_directory
from hinged_service.telemetry.worker_report import Labels, ModelSample

ROUTE = "/v1/models/{model}/learn"


def row(uid: str, name: str, at: int, events: int, queued: int = 0) -> ModelSample:
    return ModelSample(
        uid, name, name, (at, 0), events, 0, 0, 0.0, 0, 0, 0, events, 0.0, 0.0, queued
    )


def gather(observer: Observer, *rows: ModelSample) -> Gathered:
    return observer.gather(observer.page(len(rows), 0, list(rows), {}))


def learned(gathered: Gathered) -> float:
    return gathered.numbers.get(("http_requests", "POST", ROUTE, "200"), [0.0])[0]


def events(gathered: Gathered) -> dict[str, int]:
    return {row.name: row.events for row in gathered.totals.models.values()}


def die(observer: Observer) -> None:
    """Let a worker's lock go as the end of its process does, and nothing else."""
    file = observer._shelf._file
    assert file is not None
    fcntl.flock(file, fcntl.LOCK_UN)


def test_facts_are_believed_and_work_is_added(tmp_path: Path) -> None:
    one, two = Observer(tmp_path), Observer(tmp_path)
    for _ in range(3):
        one.answered("POST", ROUTE, 200, 0.001)
    two.answered("POST", ROUTE, 200, 0.001)
    one.of_model("m", "duplicates", 2)
    gather(one, row("u", "m", at=10, events=100, queued=5))
    gathered = gather(two, row("u", "m", at=9, events=90, queued=7))
    assert learned(gathered) == 4
    assert events(gathered) == {"m": 100}
    two.of_model("m", "duplicates")
    text, _ = exposed(gather(two), "1", "t", "")
    assert b'hinged_duplicates_total{model="m"} 3.0' in text
    assert b'hinged_queue_events{model="m"} 5.0' in text


def test_a_replica_that_is_behind_takes_nothing_back(tmp_path: Path) -> None:
    one, two = Observer(tmp_path), Observer(tmp_path)
    assert events(gather(one, row("u", "m", at=10, events=100))) == {"m": 100}
    gather(one)  # the model is not in memory any more
    assert events(gather(two, row("u", "m", at=9, events=90))) == {"m": 100}
    assert events(gather(two, row("u", "m", at=11, events=110))) == {"m": 110}


def test_a_restored_model_goes_back(tmp_path: Path) -> None:
    one = Observer(tmp_path)
    gather(one, row("u", "m", at=10, events=100))
    assert events(gather(one, row("u", "m", at=11, events=50))) == {"m": 50}


def test_the_dead_count_once_in_any_gathering_worker(tmp_path: Path) -> None:
    one, two, three = Observer(tmp_path), Observer(tmp_path), Observer(tmp_path)
    one.answered("POST", ROUTE, 200, 0.001)
    one.of_model("m", "invalid")
    gather(one, row("u", "m", at=10, events=100, queued=3))
    one.answered("POST", ROUTE, 200, 0.001)  # after its last page
    die(one)
    for observer in (two, three, two):
        gathered = gather(observer)
        assert learned(gathered) == 2
        assert events(gathered) == {"m": 100}
        assert len(gathered.pages) == 2
        text, _ = exposed(gathered, "1", "t", "")
        assert b'hinged_rejected_total{model="m",reason="invalid"} 1.0' in text
        assert b"hinged_queue_events{" not in text
    assert len(list(tmp_path.glob("*.sheet"))) == 2
    four = Observer(tmp_path)
    four.answered("POST", ROUTE, 200, 0.001)
    assert learned(gather(four)) == 3


def test_the_dead_count_once_also_if_the_one_who_adds_them_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = Observer(tmp_path), Observer(tmp_path)
    one.answered("POST", ROUTE, 200, 0.001)
    gather(one)
    die(one)
    with monkeypatch.context() as patched:

        def fail(*_: object, **__: object) -> None:
            raise SystemExit

        patched.setattr(Path, "unlink", fail)
        with pytest.raises(SystemExit):
            gather(two)
    assert learned(gather(two)) == 1
    assert len(list(tmp_path.glob("*.sheet"))) == 1


def test_an_older_page_does_not_replace_a_later_one(tmp_path: Path) -> None:
    one, two = Observer(tmp_path), Observer(tmp_path)
    old = one.page(1, 0, [row("u", "m", at=10, events=100)], {})
    one.of_model("m", "duplicates", 5)
    one.publish(one.page(1, 0, [row("u", "m", at=11, events=110)], {}))
    one.publish(old)
    text, _ = exposed(gather(two), "1", "t", "")
    assert b'hinged_duplicates_total{model="m"} 5.0' in text
    assert b'hinged_events_total{model="m"} 110.0' in text


def test_a_place_is_kept_until_the_model_is_gone(tmp_path: Path) -> None:
    one, two = Observer(tmp_path, 2), Observer(tmp_path, 2)
    assert set(events(gather(one, row("b", "b", 1, 1), row("c", "c", 1, 1)))) == {"b", "c"}
    gathered = gather(two, row("a", "a", 1, 1), row("d", "d", 1, 1))
    assert set(events(gathered)) == {"b", "c"}
    assert gathered.left_out == 2
    two.note_index(two.reported_models(), {"c", "a", "d"}, {"c", "a", "d"})
    assert set(events(gather(two, row("a", "a", 1, 1)))) == {"a", "c"}


def test_models_without_numbers_are_left_out_in_memory_or_not(tmp_path: Path) -> None:
    one, two = Observer(tmp_path, 2), Observer(tmp_path, 2)
    there = set("abcdefg")
    for each in (one, two):
        each.note_index(each.reported_models(), there, there)
    assert gather(one, row("a", "a", 1, 1)).left_out == 6  # the others are in no worker's memory
    one.publish(one.page(4, 0, [row("a", "a", 1, 1), row("b", "b", 1, 1)], {}))
    assert two.gather(two.page(4, 0, [row(u, u, 1, 1) for u in "cd"], {})).left_out == 5
    for each in (one, two):
        each.note_index(each.reported_models(), {"a", "b"}, {"a", "b"})
    one.publish(one.page(2, 0, [row("a", "a", 1, 1)], {}))
    assert gather(two).left_out == 0


def test_a_model_created_again_takes_the_place_of_its_name(tmp_path: Path) -> None:
    one, two = Observer(tmp_path), Observer(tmp_path)
    gather(one, row("old", "m", at=10, events=100))
    gathered = gather(two, row("new", "m", at=20, events=1))
    assert events(gathered) == {"m": 1}


def test_the_latest_count_of_labels(tmp_path: Path) -> None:
    one, two = Observer(tmp_path), Observer(tmp_path)
    rows = [row("u", "m", at=10, events=100)]
    one.publish(one.page(1, 0, rows, {"m": Labels(20.0, 5, 7, 0, 0)}))
    gathered = two.gather(two.page(1, 0, rows, {"m": Labels(10.0, 9, 3, 0, 0)}))
    assert gathered.totals.labels["m"].joined == 7


def test_counts_of_sources_are_the_greatest_that_any_worker_read(tmp_path: Path) -> None:
    one, two = Observer(tmp_path), Observer(tmp_path)
    mine = row("u", "m", 1, 1)
    ahead = {"u": {"file": {"duplicates": 3, "conflict": 1}}}
    behind = {"u": {"file": {"duplicates": 2}, "kafka": {"invalid": 4}}}
    one.publish(one.page(1, 0, [mine], {}, doors=ahead))
    found = two.gather(two.page(1, 0, [mine], {}, doors=behind))
    text, _ = exposed(found, "1", "tag", "application/openmetrics-text")
    for line in (
        'hinged_duplicates_total{door="file",model="m"} 3.0',
        'hinged_rejected_total{door="file",model="m",reason="conflict"} 1.0',
        'hinged_rejected_total{door="kafka",model="m",reason="invalid"} 4.0',
    ):
        assert line in text.decode()
    two.note_index({"u"}, set(), set())
    again = row("v", "m", 2, 0)
    one.publish(one.page(1, 0, [again], {}))
    assert two.gather(two.page(1, 0, [again], {})).totals.doors == {}


def test_names_of_all_kinds_come_back_as_they_are() -> None:
    names = ['a "quoted" name', "a\nline", "back\\slash", "{}=,", "naïve ☃"]
    observer = Observer()
    rows = [row(f"u{i}", name, 1, i) for i, name in enumerate(names)]
    text, _ = exposed(gather(observer, *rows), '1"', "t\n", "")
    found = {
        sample.labels["model"]: sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
        if sample.name == "hinged_events_total"
    }
    assert found == {name: i for i, name in enumerate(names)}


def test_a_full_sheet_keeps_what_it_has() -> None:
    sheet = CounterFile()
    first = sheet.add(("first",))
    sheet.values[first] = 5.0
    for i in range(10_000):
        sheet.values[sheet.add(("more", str(i)), 3) + 2] += 1.0
    found = sheet.read()
    assert found[("first",)][0] == 5.0
    assert 1_000 < len(found) < 10_000
    assert all(numbers[2] == 1.0 for key, numbers in found.items() if key[0] == "more")
    assert read_sheet(b"") == {}


def test_a_worker_that_stands_still_at_the_metrics_blocks_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hinged_service.telemetry.multiprocess._TIMEOUT_S", 0.05)
    one = Observer(tmp_path)
    one.answered("POST", ROUTE, 200, 0.001)
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Unavailable):
            gather(one)
    assert learned(gather(one)) == 1


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"HINGED_METRICS_DIR .* cannot be used"):
        Observer(tmp_path / "none")


def test_the_directory_of_a_service_goes_with_it_or_with_the_next_one() -> None:
    with shared_directory() as killed:
        shutil.copytree(killed, left := killed.with_name(f"{killed.name}-left"))
        with shared_directory() as made:
            assert made.stat().st_mode & 0o777 == 0o700
            assert killed.exists()
            assert not left.exists()
        assert not made.exists()
    assert not killed.exists()
