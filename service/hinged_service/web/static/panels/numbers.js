// The numbers on top of a model's page.

import { h, say } from "../dom.js";
import { ago, count, NONE, percent, rate, span } from "../format.js";
import { recentName } from "./curves.js";

const TILES = [
  ["events", "Events", (m) => count(m.events), "learned or scored"],
  ["accuracy", "Accuracy", (m) => percent(m.accuracy), "of all events"],
  ["rolling", "Recent accuracy", (m) => percent(m.rolling_accuracy), null],
  ["mistakes", "Mistakes", (m) => count(m.mistakes), "predicted wrong"],
  ["updates", "Updates", (m) => count(m.updates), "of the weights"],
  ["rate", "Events per s", (m) => rate(m.events_per_s), "in the last second"],
  ["loss", "Hinge loss", (m) => (m.judged ? (m.hinge_loss / m.judged).toFixed(3) : NONE), "mean per event"],
  ["overflows", "Overflows", (m) => count(m.overflows), "updates too large"],
  ["stale", "Behind the log", (m) => span(m.stale_s), "since it was read"],
  ["last", "Last event", (m) => (m.events ? ago(m.at_ms) : "none yet"), "or command"],
];

/** Tiles of numbers. */
export function numbersPanel() {
  const values = new Map();
  const notes = new Map();
  const node = h(
    "dl",
    { class: "tiles" },
    TILES.map(([key, name, , note]) => {
      const value = h("dd", { "data-number": key }, "–");
      values.set(key, value);
      notes.set(key, h("dd", { class: "note" }, note));
      return h("div", { class: "tile" }, h("dt", null, name), value, notes.get(key));
    }),
  );
  return {
    node,
    update({ history }) {
      const metrics = history.metrics;
      if (!metrics) return;
      for (const [key, , format] of TILES) say(values.get(key), format(metrics));
      say(notes.get("rolling"), recentName(metrics));
    },
  };
}
