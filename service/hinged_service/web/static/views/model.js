// Everything about one model, live.

import { call, every, get, modelPath, Problem, watch } from "../api.js";
import { announce, card, h, put, say } from "../dom.js";
import { count, percent } from "../format.js";
import { historyOf, turnText } from "../history.js";
import { calibrationPanel } from "../panels/calibration.js";
import { challengersPanel } from "../panels/challengers.js";
import { checkpointsPanel } from "../panels/checkpoints.js";
import { confusionPanel } from "../panels/confusion.js";
import { accuracyPanel, boundPanel, lossPanel, throughputPanel } from "../panels/curves.js";
import { doorsPanel } from "../panels/doors.js";
import { eventsPanel } from "../panels/events.js";
import { labelsPanel } from "../panels/labels.js";
import { marginsPanel } from "../panels/margins.js";
import { numbersPanel } from "../panels/numbers.js";
import { planePanel } from "../panels/plane.js";
import { tryPanel } from "../panels/try.js";
import { weightsPanel } from "../panels/weights.js";

const UPDATE_MS = 200;
const INFO_MS = 5000;
const SAID_MS = 15_000;

/** The buttons that command the model. */
function commands(name, says) {
  const frozen = h("button", { type: "button" }, "Freeze");
  const reset = h("button", { type: "button", class: "quiet" }, "Reset");
  let isFrozen = false;
  async function act(command) {
    try {
      await call("POST", modelPath(name, `/${command}`));
      say(says, "");
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      say(says, error.message);
    }
  }
  frozen.addEventListener("click", () => act(isFrozen ? "unfreeze" : "freeze"));
  reset.addEventListener("click", () => {
    if (reset.dataset.sure) { delete reset.dataset.sure; say(reset, "Reset"); act("reset"); return; }
    reset.dataset.sure = "yes"; // what was learned is gone then, so it takes a second press
    say(reset, "Really forget what it learned?");
  });
  reset.addEventListener("blur", () => { delete reset.dataset.sure; say(reset, "Reset"); });
  return {
    node: h("span", { class: "row", hidden: true }, frozen, reset), // until there is a model
    update(now) {
      isFrozen = now;
      say(frozen, isFrozen ? "Unfreeze" : "Freeze");
    },
  };
}

function specPanel() {
  const text = h("pre", { tabindex: 0 });
  return {
    node: card("Spec", null, text),
    update({ info }) {
      if (!info) return;
      const said = Object.entries({ ...info.spec, configured: info.configured }).filter(([, value]) =>
        value !== null && (typeof value !== "object" || Object.keys(value).length > 0));
      say(text, JSON.stringify(Object.fromEntries(said), null, 2));
    },
  };
}

/** The view. */
export function modelView(name, signal) {
  const state = { name, info: null, weights: null, life: null, history: historyOf(`?${name}`) };
  const badges = h("span", { class: "row" });
  const status = h("span", { class: "status", role: "status" }, "connecting");
  const says = h("p", { class: "wrong", role: "alert" });
  const controls = commands(name, says);
  const checkpoints = checkpointsPanel(name, signal);
  const challengers = challengersPanel(name, signal);
  const numbers = numbersPanel();
  const wide = [
    [accuracyPanel()], [lossPanel()], [planePanel(name, signal)], [boundPanel(name, signal), throughputPanel()],
    [marginsPanel(), confusionPanel()], [calibrationPanel()], [eventsPanel()],
  ];
  const narrow = [weightsPanel(), tryPanel(name), challengers, checkpoints, labelsPanel(), doorsPanel(), specPanel()];
  const panels = [numbers, ...wide.flat(), ...narrow];
  const body = h("div", null, numbers.node, h(
    "div",
    { class: "columns" },
    h("div", { class: "column" }, wide.map((row) => (row.length === 1 ? row[0].node : h("div", { class: "pair" }, row.map((one) => one.node))))),
    h("div", { class: "column" }, narrow.map((one) => one.node)),
  ));
  let waiting = null;
  let saidAt = 0;

  function update() {
    waiting ??= setTimeout(() => {
      waiting = null;
      if (signal.aborted) return;
      for (const panel of panels) panel.update(state);
      const metrics = state.history.metrics;
      if (metrics) controls.update(metrics.frozen);
      if (metrics?.events && Date.now() - saidAt > SAID_MS) {
        saidAt = Date.now();
        announce(`${count(metrics.events)} events, accuracy ${percent(metrics.accuracy)}`);
      }
    }, UPDATE_MS);
  }

  async function lookUp() {
    try {
      state.info = await get(modelPath(name), signal);
    } catch (error) {
      if (error instanceof Problem && !state.info) gone(error.message, error.status === 404);
      throw error;
    }
    const { spec, frozen } = state.info;
    controls.node.hidden = false;
    const alias = state.info.name === name ? null : h("span", { class: "badge" }, `alias of ${state.info.name}`);
    put(badges, alias, h("span", { class: "badge" }, spec.learner.type), (spec.pipeline ?? []).map((step) => h("span", { class: "badge" }, step.type)), frozen ? h("span", { class: "badge cold" }, "frozen") : null);
    update();
  }

  function gone(text, absent) {
    const next = absent ? h("p", null, h("a", { href: "#/" }, "See all models"), " or ", h("a", { href: "#/new" }, "create one"), ".") : null;
    put(body, h("div", { class: "empty" }, h("p", null, text), next));
    status.hidden = absent;
    controls.node.hidden = true;
  }

  function told(event, data) {
    if (event === "model") {
      const before = state.history;
      state.history = historyOf(data.uid);
      if (before !== state.history) {
        state.history.addPast([...before.outcomes].reverse());
        if (state.life) state.history.addLife(state.life);
      }
    }
    if (event === "metrics") state.history.addMetrics(data);
    if (event === "outcome") state.history.addOutcome(data);
    if (event === "weights") state.weights = data;
    if (event === "drift") state.history.addMark("drift", "drift", data.at_ms, data.events);
    if (event === "command") {
      state.history.addMark(data.do, turnText(data.do, JSON.stringify(data.set)), data.at_ms);
      if (data.do === "restore") life().catch(() => undefined); // the checkpoint has its own
      lookUp().catch(() => undefined);
    }
    update();
  }

  function stands(text) {
    say(status, text);
    status.className = `status ${["live", "connecting", "paused"].includes(text) ? text : "off"}`;
    if (text === "deleted") gone("The model was deleted.", true);
  }

  async function life() {
    state.life = await get(modelPath(name, "/history"), signal);
    state.history.addLife(state.life);
    update();
  }

  async function past() {
    const events = await get(modelPath(name, "/recent?count=200"), signal);
    state.history.addPast(events);
    update();
  }

  let turn = 0;
  every(INFO_MS, async () => {
    await lookUp();
    turn += 1;
    if (turn % 2 === 1) await Promise.all([challengers.refresh(), checkpoints.refresh()]);
  }, signal);
  Promise.allSettled([past(), life()]).then(() => watch(name, told, stands, signal));
  return h(
    "div",
    null,
    h("div", { class: "headline" }, h("h1", null, name), badges, status, h("span", { class: "grow" }), controls.node),
    says,
    body,
  );
}
