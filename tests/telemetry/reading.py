"""Reading metrics as a scraper does, and waiting for what they tell."""

from dataclasses import dataclass

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.support.processes import wait_until

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Metrics:
    samples: dict[tuple[str, Labels], float]

    def value(self, name: str, **labels: str) -> float:
        """Return a sample; 0 for a counter that was not needed yet."""
        return self.samples.get((name, tuple(sorted(labels.items()))), 0.0)

    def names(self) -> set[str]:
        return {name for name, _ in self.samples}

    def labels(self, name: str) -> list[dict[str, str]]:
        return [dict(labels) for found, labels in self.samples if found == name]

    def growing(self) -> dict[tuple[str, Labels], float]:
        """Return what may never fall: counters and histograms."""
        ends = ("_total", "_bucket", "_count", "_sum")
        return {key: value for key, value in self.samples.items() if key[0].endswith(ends)}


def scrape(client: httpx.Client, url: str = "") -> Metrics:
    """Return what /metrics tells; no series may come twice."""
    answer = client.get(f"{url}/metrics")
    assert answer.status_code == 200, answer.text
    samples: dict[tuple[str, Labels], float] = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            key = sample.name, tuple(sorted(sample.labels.items()))
            assert key not in samples, key
            samples[key] = sample.value
    return Metrics(samples)


def until(client: httpx.Client, url: str, name: str, value: float, **labels: str) -> Metrics:
    """Scrape until a sample has a value."""
    metrics = [scrape(client, url)]

    def there() -> bool:
        metrics[0] = scrape(client, url)
        return metrics[0].value(name, **labels) == value

    wait_until(there, 30)
    return metrics[0]
