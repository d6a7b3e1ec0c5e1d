// The numbers on top of a model's page.

import { h, say } from "../dom.js";
import { ago, count, percent, rate, span } from "../format.js";

const TILES = [
  ["events", "Events", (m) => count(m.events)],
  ["accuracy", "Accuracy", (m) => percent(m.accuracy)],
  ["rolling", "Lately", (m, last) => percent(last?.rolling), "over about the last 200 events"],
  ["mistakes", "Mistakes", (m) => count(m.mistakes)],
  ["updates", "Updates", (m) => count(m.updates)],
  ["rate", "Events per s", (m) => rate(m.events_per_s)],
  ["loss", "Hinge loss", (m) => (m.judged ? (m.hinge_loss / m.judged).toFixed(3) : "–"), "mean per event"],
  ["overflows", "Overflows", (m) => count(m.overflows), "updates left out because a number would overflow; if they grow, the model diverges"],
  ["stale", "Behind the log", (m) => span(m.stale_s)],
  ["last", "Last event", (m) => ago(m.at_ms)],
];

/** Tiles of numbers. */
export function numbersPanel() {
  const values = new Map();
  const node = h(
    "dl",
    { class: "tiles" },
    TILES.map(([key, name, , note]) => {
      const value = h("dd", { "data-number": key }, "–");
      values.set(key, value);
      return h("div", { class: "tile", title: note ?? null }, h("dt", null, name), value);
    }),
  );
  return {
    node,
    update({ history }) {
      const metrics = history.metrics;
      if (!metrics) return;
      for (const [key, , format] of TILES) say(values.get(key), format(metrics, history.samples.at(-1)));
    },
  };
}
