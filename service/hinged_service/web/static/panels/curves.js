// The development of a model: accuracy, log loss, mistakes and updates, throughput.

import { get, modelPath, Problem } from "../api.js";
import { LineChart } from "../charts/line.js";
import { card, h, say } from "../dom.js";
import { count, counted, number, percent, rate } from "../format.js";

const SMALL = 2000;
const GROWN = 1.4;
const REST_MS = 5000;

export const FEED = "No events yet. Send labelled events with POST …/learn, or teach one under “Try it”.";
const ZOOM = "Point at a chart or press its arrow keys to read values. Drag across it to zoom in, double-click to see all.";

/** The name of the accuracy of the newest events. */
export function recentName(metrics) {
  const name = Object.keys(metrics?.metrics ?? {}).find((one) => one.startsWith("rolling_accuracy_"));
  return name === undefined ? "newest 200+ events" : `newest ${count(Number(name.split("_").at(-1)))} events`;
}

/** Accuracy of all events and of the newest. */
export function accuracyPanel() {
  const lines = [{ key: "rolling", label: "" }, { key: "accuracy", label: "all events" }];
  const chart = new LineChart({ title: "Accuracy", lines, yTitle: "Accuracy", format: percent, within: [0, 1], height: 230, empty: FEED });
  return {
    node: card("Accuracy", null, chart.node, h("p", { class: "soft" }, `Each event is predicted first and learned then. ${ZOOM}`)),
    update({ history }) {
      lines[0].label = recentName(history.metrics);
      chart.draw(history.samples, history.marks);
    },
  };
}

/** Log loss, if the spec asks for it. */
export function lossPanel() {
  const chart = new LineChart({ title: "Log loss", lines: [{ key: "loss", label: "all events" }], yTitle: "Log loss (nats per event)", format: (value, digits = 3) => (Number.isFinite(value) ? value.toFixed(digits) : "–"), from: 0, empty: FEED });
  const node = card("Log loss", null, chart.node);
  node.hidden = true;
  return {
    node,
    update({ history, info }) {
      node.hidden = !history.samples.some((one) => Number.isFinite(one.loss)) && !(info && "log_loss" in info.metrics);
      if (!node.hidden) chart.draw(history.samples, history.marks);
    },
  };
}

/** Events per second. */
export function throughputPanel() {
  const chart = new LineChart({ title: "Throughput", lines: [{ key: "rate", label: "events per second" }], yTitle: "Events per second", format: rate, from: 0, axis: "t", empty: FEED });
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
    yTitle: "Number so far",
    format: count,
    from: 0,
    empty: FEED,
  });
  const says = h("p", { class: "soft", role: "status" });
  const button = h("button", { type: "button" }, "Compare with the mistake bound");
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
        say(says, `${counted(found.updates, "update")}${window}; the ${kind} bound allows ${number(bound.value)} for ${counted(found.events, "event")}. ${found.holds ? "It holds." : "It does not hold!"}`);
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
