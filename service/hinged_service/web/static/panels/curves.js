// How a model does over time: accuracy, mistakes and updates, throughput.

import { get, modelPath, Problem } from "../api.js";
import { LineChart } from "../charts/line.js";
import { card, h, say } from "../dom.js";
import { count, number, percent, rate } from "../format.js";

const SMALL = 2000;
const GROWN = 1.4;
const REST_MS = 5000;

/** Accuracy since the beginning and lately. */
export function accuracyPanel() {
  const chart = new LineChart({
    title: "Accuracy over time",
    lines: [{ key: "rolling", label: "lately" }, { key: "accuracy", label: "since the beginning" }],
    format: percent,
    range: [null, null],
    height: 210,
  });
  return {
    node: card("Accuracy", null, chart.node, h("p", { class: "soft" }, "Each event is predicted first and learned then. Triangles mark drifts and commands.")),
    update({ history }) { chart.draw(history.samples, history.marks); },
  };
}

/** Events per second. */
export function throughputPanel() {
  const chart = new LineChart({ title: "Events per second", lines: [{ key: "rate", label: "events per s" }], format: rate });
  return {
    node: card("Throughput", null, chart.node),
    update({ history }) { chart.draw(history.samples, history.marks); },
  };
}

function best(bounds) {
  const known = Object.entries(bounds).filter(([, bound]) => Number.isFinite(bound.value));
  return known.sort((a, b) => a[1].value - b[1].value)[0] ?? null;
}

/** Mistakes and updates, and what the perceptron's theorem allows. */
export function boundPanel(name, signal) {
  const chart = new LineChart({
    title: "Mistakes and updates",
    lines: [{ key: "updates", label: "updates" }, { key: "mistakes", label: "mistakes" }, { key: "bound", label: "best bound when asked", sparse: true }],
    format: count,
    range: [0, null],
  });
  const says = h("p", { class: "soft", role: "status" });
  const button = h("button", { type: "button" }, "Hold it against the theorem");
  let last = null;
  let asked = { events: 0, at: 0, bound: Infinity };

  /** Whether the last bound is out of date, and the model small enough to ask unbidden. */
  function due({ events, updates }) {
    if (events > SMALL || events <= asked.events || Date.now() - asked.at < REST_MS) return false;
    return events > asked.events * (updates > asked.bound ? 1.1 : GROWN);
  }

  async function ask() {
    if (button.disabled) return;
    asked = { ...asked, at: Date.now(), events: last?.samples.at(-1)?.events ?? 0 };
    button.disabled = true;
    say(says, "Looking for the best bound…");
    try {
      const found = await get(modelPath(name, "/bound"), signal);
      const [kind, bound] = best(found.bounds) ?? [];
      const window = found.start_norm === 0 ? "" : " (in the window that the log still holds)";
      if (bound) {
        const now = last?.samples.at(-1);
        if (now && found.start_norm === 0) now.bound = asked.bound = bound.value;
        say(says, `${count(found.updates)} updates${window}; the ${kind} bound allows ${number(bound.value)} for these ${count(found.events)} events. ${found.holds ? "It holds." : "It does not hold!"}`);
      } else {
        say(says, found.notes.join(" "));
      }
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      say(says, error.message);
    } finally {
      button.disabled = false;
      if (last) chart.draw(last.samples, last.marks);
    }
  }

  button.addEventListener("click", ask);
  const part = h("div", { class: "row" }, button, says);
  return {
    node: card("Mistakes and updates", null, chart.node, part),
    update({ history, info }) {
      last = history;
      chart.draw(history.samples, history.marks);
      if (!info) return;
      part.hidden = info.spec.learner.type !== "perceptron";
      const now = history.samples.at(-1);
      if (now && !part.hidden && due(now)) ask();
    },
  };
}
