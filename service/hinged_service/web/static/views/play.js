// The textbook data sets, one event at a time.

import { call, get, modelPath, Problem } from "../api.js";
import { Bars } from "../charts/bars.js";
import { announce, card, h, put, say } from "../dom.js";
import { label, number, signed } from "../format.js";
import { History } from "../history.js";
import { planePanel } from "../panels/plane.js";
import { EXAMPLES } from "./examples.js";

const PLAY_MS = 700;
const OVERVIEW_MS = 1_500;

/** One example: a model of its own, its rows, and a button that teaches it the next of them. */
function player(example, signal) {
  const name = `example-${example.key}`;
  const history = new History();
  history.outcomes = example.events.map((one, number) => ({ ...one, y_pred: one.y, past: true, number }));
  const state = { history, info: null, weights: null, there: false };
  const plane = planePanel(name, signal, { title: "The boundary", wanted: example.plane ?? ["a", "b"], pause_ms: 0 });
  const bars = new Bars({ title: "The weights" });
  const start = `Press “Next event”: it is predicted first and learned then. The first press creates the model ${name}.`;
  const says = h("p", { class: "verdict", role: "status" }, start);
  const facts = h("p", { class: "soft" });
  const wrong = h("p", { class: "wrong", role: "alert" });
  const next = h("button", { type: "button", class: "main" }, "Next event");
  const play = h("button", { type: "button", "aria-pressed": "false" }, "Play");
  const again = h("button", { type: "button", class: "quiet" }, "Start over");
  const remove = h("button", { type: "button", class: "quiet" }, "Delete the model");
  const page = h("a", { class: "button quiet", href: `#/m/${name}` }, "Its page");
  const features = Object.keys(example.events[0].x);
  const rows = example.events.map((one) => h(
    "tr",
    null,
    features.map((feature) => h("td", { class: "num" }, number(one.x[feature]))),
    h("td", null, label(one.y)),
    h("td", { class: "says" }),
  ));
  const tally = { step: 0, mistakes: 0, updates: 0, clean: 0 };
  let timer = null;

  function there(is) {
    state.there = is;
    for (const one of [again, remove, page]) one.hidden = !is;
    if (is) return;
    Object.assign(tally, { step: 0, clean: 0 });
    Object.assign(state, { info: { spec: example.spec, classes: [false, true] }, weights: null });
    plane.update(state);
    rows.forEach((row) => { row.classList.remove("here"); put(row.lastChild, "not asked yet"); });
    bars.draw([]);
    say(facts, "There is no model yet, so there are no weights.");
  }

  /** Go on with the model if it was played before; nothing is created by looking. */
  async function find() {
    await lookUp();
    if (state.there) return;
    await new Promise((done) => setTimeout(done, OVERVIEW_MS)); // a new model is not in it yet
    if (!state.there && !signal.aborted) await lookUp();
  }

  async function lookUp() {
    const found = await get(`v1/overview?count=100&match=${name}`, signal);
    if (state.there) return; // created meanwhile
    there(found.models.some((one) => one.name === name));
    if (!state.there) return;
    tally.step = (await get(modelPath(name), signal)).events;
    say(says, "Press “Next event”: it goes on where it was.");
    await look();
  }

  async function create() {
    await call("PUT", modelPath(name), example.spec, signal);
    there(true);
  }

  /** Show weights and boundary, and what the model says of each row now. */
  async function look() {
    const questions = example.events.map(({ x }) => ({ x }));
    const [info, weights, answers] = await Promise.all([
      get(modelPath(name), signal),
      get(modelPath(name, "/weights"), signal),
      call("POST", modelPath(name, "/predict"), questions, signal),
    ]);
    Object.assign(state, { info, weights });
    history.outcomes.forEach((one, i) => {
      one.y_pred = answers[i].y;
      const right = answers[i].y === one.y;
      put(rows[i].lastChild, h("span", { class: right ? "badge good" : "badge bad" }, `${right ? "right" : "wrong"} ${signed(answers[i].score)}`));
    });
    bars.draw([...Object.entries(weights.weights).sort(([a], [b]) => (a < b ? -1 : 1)), ["(intercept)", weights.intercept]]);
    plane.update(state);
    const pass = Math.floor(tally.step / rows.length) + 1;
    say(facts, `Pass ${pass}. In all ${info.events} events, ${info.mistakes} mistakes, ${info.updates} updates.`);
  }

  async function step() {
    if (!state.there) await create();
    const i = tally.step % rows.length;
    const { x, y } = example.events[i];
    const learned = await call("POST", modelPath(name, "/learn"), { x, y }, signal);
    tally.step += 1;
    tally.clean = learned.updated ? 0 : tally.clean + 1;
    rows.forEach((row, n) => row.classList.toggle("here", n === i));
    const moved = learned.updated ? "the weights move" : "nothing moves";
    const done = tally.clean >= rows.length ? " A whole pass without a change: it has learned it." : "";
    say(says, `Event ${i + 1}: it says ${label(learned.y_pred)} (score ${number(learned.score)}), the label is ${label(y)}: ${learned.mistake ? "a mistake" : "right"}, ${moved}.${done}`);
    await look();
    return done !== "";
  }

  async function guarded(work) {
    say(wrong, "");
    try {
      return await work();
    } catch (error) {
      stop();
      if (!(error instanceof Problem)) throw error;
      say(wrong, error.message);
      return true;
    }
  }

  function stop() {
    clearTimeout(timer);
    timer = null;
    say(play, "Play");
    play.setAttribute("aria-pressed", "false");
  }

  async function turn() {
    const done = await guarded(step);
    if (timer === null) return;
    if (done || signal.aborted) stop();
    else timer = setTimeout(turn, PLAY_MS);
  }

  next.addEventListener("click", async () => {
    next.disabled = true; // one at a time, in their order
    await guarded(step);
    next.disabled = false;
    next.focus();
  });
  play.addEventListener("click", () => {
    if (timer !== null) { stop(); return; }
    say(play, "Pause");
    play.setAttribute("aria-pressed", "true");
    timer = setTimeout(turn, 0);
  });
  again.addEventListener("click", () => guarded(async () => {
    stop();
    await call("DELETE", modelPath(name), undefined, signal);
    there(false);
    await create();
    await look();
    say(says, "A new model, all weights zero.");
    announce("A new model, all weights zero.");
  }));
  remove.addEventListener("click", () => guarded(async () => {
    stop();
    await call("DELETE", modelPath(name), undefined, signal);
    there(false);
    say(says, start);
    announce("The model is deleted.");
  }));
  there(false);
  guarded(find);
  return h(
    "div",
    null,
    h("p", { class: "lead" }, example.about),
    h("div", { class: "row" }, next, play, again, remove, page),
    says,
    wrong,
    h(
      "div",
      { class: "columns" },
      h("div", { class: "column" }, plane.node),
      h("div", { class: "column" }, card("The weights", null, bars.node, facts),
      card("The events", null, h("table", { class: "rows" },
        h("thead", null, h("tr", null, features.map((feature) => h("th", { scope: "col", class: "num" }, feature)), h("th", { scope: "col" }, "label"), h("th", { scope: "col" }, "says now"))),
        h("tbody", null, rows))),
      card("The spec", null, h("pre", { tabindex: 0 }, JSON.stringify(example.spec, null, 2)))),
    ),
  );
}

/** The view. */
export function playView(key, signal) {
  const example = EXAMPLES.find((one) => one.key === key) ?? EXAMPLES[0];
  const tabs = EXAMPLES.map((one) => h("a", { href: `#/play/${one.key}`, class: "button", "aria-current": one === example ? "true" : null }, one.title));
  return h(
    "div",
    null,
    h("div", { class: "headline" }, h("h1", null, example.title), h("span", { class: "grow" }), h("nav", { class: "row", "aria-label": "Examples" }, tabs)),
    player(example, signal),
  );
}
