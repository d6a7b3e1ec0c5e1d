// Try it: predict and explain an event, then learn its label.

import { call, modelPath, Problem } from "../api.js";
import { Bars } from "../charts/bars.js";
import { announce, card, freshId, h, put, say } from "../dom.js";
import { label, number, percent, signed } from "../format.js";
import { isMulticlass } from "../features.js";

const FIELDS = 12;
const MOST = 12;
const LONG = 30;

/** A value as its field says it: JSON, or else text. */
function valueOf(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null ? text : value;
  } catch {
    return text;
  }
}

function labelControl(info) {
  const id = freshId("label");
  const known = info.classes;
  const open = isMulticlass(info.spec) && !Array.isArray(info.spec.labels);
  if (!open) {
    const select = h("select", { id }, known.map((one, i) => h("option", { value: i }, label(one))));
    return { id, node: select, get: () => known[Number(select.value)], set: (y) => { select.value = String(Math.max(0, known.indexOf(y))); } };
  }
  const list = freshId("labels");
  const input = h("input", { id, list, autocomplete: "off", required: true });
  const node = h("span", null, input, h("datalist", { id: list }, known.map((one) => h("option", { value: label(one) }))));
  const integers = info.spec.labels === "integers";
  return { id, node, get: () => (integers ? Number(input.value) : input.value), set: (y) => { input.value = label(y); } };
}

/** A form for one event. */
export function tryPanel(name) {
  const fields = h("div", { class: "fields" });
  const text = h("textarea", { rows: 5, spellcheck: "false", "aria-label": "The event's features as JSON" });
  const asJson = h("input", { type: "checkbox", id: freshId("json") });
  const wrong = h("p", { class: "wrong", role: "alert" });
  const answer = h("div", { class: "answer", hidden: true });
  const bars = new Bars({ title: "What each feature adds to the score" });
  const sum = h("p", { class: "soft" });
  const verdict = h("p", { class: "verdict", role: "status" });
  const outcome = h("p", { class: "soft", role: "status" });
  const right = h("span");
  let info = null;
  let control = null;
  let shownClasses = "";
  let filled = false;
  let latest = null;

  function read() {
    if (asJson.checked) {
      const parsed = JSON.parse(text.value);
      return typeof parsed?.x === "object" && parsed.x !== null ? parsed.x : parsed;
    }
    const rows = [...fields.querySelectorAll(".field")];
    const pairs = rows.map((row) => [...row.querySelectorAll("input, textarea")].map((input) => (input.value === input.dataset.shown ? input.dataset.exact : input.value)));
    const given = pairs.filter(([feature, value]) => feature !== "" && value !== "");
    return Object.fromEntries(given.map(([feature, value]) => [feature, valueOf(value)]));
  }

  /** A field for a value; a number is shown short, and sent with all its digits if left alone. */
  function addField(feature = "", value = "") {
    const long = typeof value === "string" && value.length > LONG;
    const exact = typeof value === "string" ? value : JSON.stringify(value);
    const shown = typeof value === "number" ? number(value) : exact;
    const about = { "aria-label": `Value of ${feature || "the feature"}`, placeholder: "value", value: shown, spellcheck: "false" };
    const input = long ? h("textarea", { ...about, rows: 4 }) : h("input", about);
    Object.assign(input.dataset, { exact, shown });
    const row = h(
      "div",
      { class: long ? "field long" : "field" },
      h("input", { "aria-label": "Feature", placeholder: "feature", value: feature, spellcheck: "false" }),
      input,
      h("button", { type: "button", class: "quiet", "aria-label": `Remove ${feature || "the feature"}`, onclick: () => row.remove() }, "×"),
    );
    fields.append(row);
    return row;
  }

  function fillWith(x) {
    const pairs = Object.entries(x);
    text.value = JSON.stringify(x, null, 1);
    put(fields);
    for (const [feature, value] of pairs.slice(0, FIELDS)) addField(feature, value);
    if (pairs.length === 0) addField();
    asJson.checked = pairs.length > FIELDS;
    swap();
  }

  function swap() {
    text.hidden = !asJson.checked;
    fields.hidden = asJson.checked;
    more.hidden = asJson.checked;
  }

  /** Show what the model says of `x`. */
  async function explain(x) {
    const [predicted, explained] = await Promise.all([
      call("POST", modelPath(name, "/predict"), { x }),
      call("POST", modelPath(name, "/explain"), { x }).catch((error) => {
        if (error instanceof Problem && error.status === 409) return null;
        throw error;
      }),
    ]);
    answer.hidden = false;
    const proba = predicted.proba?.[label(predicted.y)];
    put(verdict, "It says ", h("strong", null, label(predicted.y)), proba === undefined ? null : ` (${percent(proba)}${info?.calibrated === false ? ", uncalibrated" : ""})`, `, score ${signed(predicted.score)}`);
    bars.node.hidden = explained === null;
    if (explained === null) {
      say(sum, "The score of this learner is not a sum over features.");
    } else {
      const pairs = Object.entries(explained.features);
      const rest = pairs.slice(MOST).reduce((total, [, value]) => total + value, 0);
      bars.draw([...pairs.slice(0, MOST), ...(explained.intercept ? [["(intercept)", explained.intercept]] : [])]);
      say(sum, `${pairs.length > MOST ? `${pairs.length - MOST} more add ${signed(rest)}. ` : ""}Together ${signed(explained.score)}: the score.`);
    }
    return predicted;
  }

  async function guarded(work) {
    say(wrong, "");
    try {
      await work();
    } catch (error) {
      if (error instanceof SyntaxError) say(wrong, `This is not JSON: ${error.message}`);
      else if (error instanceof Problem) say(wrong, [error.message, ...error.errors.map((one) => `${one.field}: ${one.reason}`)].join(" "));
      else throw error;
    }
  }

  const ask = () => guarded(async () => {
    say(outcome, "");
    const predicted = await explain(read());
    control?.set(predicted.y);
  });

  const teach = () => guarded(async () => {
    const x = read();
    const y = control.get();
    const learned = await call("POST", modelPath(name, "/learn"), { x, y });
    const what = learned.mistake ? "That was a mistake" : "It was right";
    say(outcome, `${what}${learned.updated ? ", and the weights moved" : ", and nothing changed"}. Score before ${signed(learned.score)}.`);
    announce(outcome.textContent);
    await explain(x);
  });

  const more = h("button", { type: "button", class: "quiet", onclick: () => addField().querySelector("input").focus() }, "Add a feature");
  asJson.addEventListener("change", () => {
    if (asJson.checked) { asJson.checked = false; text.value = JSON.stringify(read(), null, 1); asJson.checked = true; }
    else guarded(() => fillWith(JSON.parse(text.value)));
    swap();
  });
  addField();
  swap();
  put(
    answer,
    verdict,
    bars.node,
    sum,
    h("div", { class: "row teach" }, right, h("button", { type: "button", onclick: teach }, "Teach it")),
    outcome,
  );
  const form = h(
    "form",
    { onsubmit: (event) => { event.preventDefault(); ask(); } },
    fields,
    text,
    h("div", { class: "row" },
      h("button", { type: "submit", class: "main" }, "Predict and explain"),
      more,
      h("button", { type: "button", class: "quiet", onclick: () => latest && fillWith(latest) }, "Take the latest event"),
      h("label", { class: "check", for: asJson.id }, asJson, " as JSON")),
    wrong,
  );
  return {
    node: card("Try it", { class: "try" }, form, answer),
    update(state) {
      latest = state.history.outcomes.at(-1)?.x ?? latest;
      if (latest && !filled) {
        filled = true;
        fillWith(latest);
      }
      if (!state.info) return;
      info = state.info;
      const classes = JSON.stringify(info.classes);
      if (classes === shownClasses) return;
      shownClasses = classes;
      const before = control?.get();
      control = labelControl(info);
      if (before !== undefined) control.set(before);
      put(right, h("label", { for: control.id }, "The right label is "), control.node);
    },
  };
}
