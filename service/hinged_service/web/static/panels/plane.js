// Two features, the latest events, and the boundary that the model draws between them.

import { call, modelPath, Problem } from "../api.js";
import { legend as legendOf } from "../charts/marks.js";
import { Plane } from "../charts/plane.js";
import { card, h, put, say } from "../dom.js";
import { extent } from "../charts/scale.js";
import { isAffine, isMulticlass, numericFeatures, strongest, typical } from "../features.js";

const GRID = 25;
const GRID_COSTS = 3; // times the pause: so many questions at once are work for the service
const NAMES = 60;
const KEY = "Each mark is one of the latest events; its colour and shape are those of its label. Hollow: predicted wrong. In a ring: the newest. The shades are what the model predicts now, the line is its boundary.";
const OTHERS = " The other features are at their mean.";

/** Why there is no picture. */
function nothing(events) {
  if (events.length === 0) return "No events yet. Send some with two numeric features, and they are drawn here with the boundary.";
  const text = events.some((one) => Object.values(one.x ?? {}).some((value) => typeof value === "string"));
  return text
    ? "No picture: the events of this model hold text, not two numbers. “Largest weights” and “Try it” show what counts."
    : "No picture: it needs two numeric features, and the latest events have fewer.";
}

/** The plane, which asks the model where its boundary is whenever the model has moved. */
export function planePanel(name, signal, { title = "Two features", wanted = null, pause_ms = 1000 } = {}) {
  const plane = new Plane({ title });
  const selects = ["across", "up"].map((where) => h("select", { "aria-label": `Feature ${where}` }));
  const note = h("p", { class: "soft" });
  const legend = h("p", { class: "sides" });
  const controls = h("div", { class: "row" }, h("label", null, "Across ", selects[0]), h("label", null, "Up ", selects[1]), legend);
  let state = null;
  let chosen = wanted;
  let byHand = wanted !== null;
  let range = null;
  let asked = { question: "", at: 0, timer: null };
  let listed = "";

  selects.forEach((select, i) => select.addEventListener("change", () => {
    byHand = true;
    chosen = [...chosen];
    chosen[i] = select.value;
    range = null;
    draw();
  }));

  function choose(features) {
    const known = new Set(features.map((one) => one.name));
    if (!byHand || !chosen?.every((one) => known.has(one))) {
      const order = (one) => features.findIndex((feature) => feature.name === one);
      const best = strongest(features, state.weights?.weights ?? Object.values(state.weights?.classes ?? {})[0]?.weights).sort((a, b) => order(a) - order(b)); // as in the events
      // The picture must not jump about while two features are about equally strong.
      if (!chosen || chosen.length < 2 || state.history.outcomes.length % 50 === 0) {
        if (best.join("\0") !== chosen?.join("\0")) range = null;
        chosen = best;
      }
    }
    const names = features.slice(0, 300).map((one) => one.name).sort();
    if (names.join("\0") !== listed) {
      listed = names.join("\0");
      for (const select of selects.filter((one) => one !== document.activeElement)) put(select, names.map((one) => h("option", { value: one }, one)));
    }
    selects.forEach((select, i) => { if (document.activeElement !== select) select.value = chosen[i]; });
  }

  function widened(events, i) {
    const [low, high] = extent(events.map((one) => one.x[chosen[i]]), 0.15);
    const before = range?.[i === 0 ? "x" : "y"];
    return before ? [Math.min(before[0], low), Math.max(before[1], high)] : [low, high];
  }

  function draw() {
    const { history, info } = state;
    const features = numericFeatures(history.outcomes);
    controls.hidden = features.length < 2;
    plane.node.hidden = features.length < 2;
    say(note, features.length < 2 ? nothing(history.outcomes) : KEY + (features.length > 2 ? OTHERS : ""));
    if (features.length < 2) return;
    choose(features);
    const events = history.outcomes.filter((one) => chosen.every((f) => typeof one.x?.[f] === "number"));
    range = { x: widened(events, 0), y: widened(events, 1) };
    const classes = info.classes;
    const newest = history.outcomes.at(-1);
    put(legend, legendOf(classes));
    plane.draw(
      events.map((one) => ({
        x: one.x[chosen[0]], y: one.x[chosen[1]], label: one.y,
        wrong: one.past ? one.y_pred !== one.y : one.mistake, newest: one === newest && !one.past,
      })),
      chosen, range, classes,
    );
    ask();
  }

  function ask() {
    if (!state.weights && !state.history.metrics) { plane.forget(); return; } // there is no model yet
    const position = state.weights?.position ?? state.history.metrics?.position;
    const question = JSON.stringify([chosen, range, position]);
    if (question === asked.question || asked.timer) return;
    const rest_ms = isAffine(state.info.spec) ? pause_ms : GRID_COSTS * pause_ms;
    const wait_ms = Math.max(0, asked.at + rest_ms - Date.now());
    asked.timer = setTimeout(() => {
      asked = { question, at: Date.now(), timer: null };
      if (!signal.aborted && !document.hidden) askModel();
    }, wait_ms);
  }

  async function askModel() {
    const { history, info } = state;
    const binary = !isMulticlass(info.spec);
    const n = isAffine(info.spec) ? 2 : GRID;
    const others = Object.fromEntries(Object.entries(typical(history.outcomes)).slice(0, NAMES));
    const at = ([low, high], i) => low + ((high - low) * i) / (n - 1);
    const questions = Array.from({ length: n * n }, (_, i) => ({
      x: { ...others, [chosen[0]]: at(range.x, i % n), [chosen[1]]: at(range.y, Math.floor(i / n)) },
    }));
    try {
      const answers = await call("POST", modelPath(name, "/predict"), questions, signal);
      const index = (y) => info.classes.findIndex((one) => one === y);
      const values = binary ? answers.map((one) => one.score) : answers.map((one) => index(one.y));
      plane.answer({ n, values, binary });
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      say(note, `The boundary cannot be drawn: ${error.message}`);
    }
  }

  return {
    node: card(title, null, controls, plane.node, note),
    update(now) {
      if (!now.info) return;
      state = now;
      draw();
    },
  };
}
