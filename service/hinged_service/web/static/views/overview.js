// All models: learner, events, accuracy, and how these change.

import { every, get, Problem } from "../api.js";
import { sparkline } from "../charts/spark.js";
import { h, put, say } from "../dom.js";
import { ago, count, counted, percent, rate, span } from "../format.js";
import { EXAMPLES } from "./examples.js";

const EVERY_MS = 2000;
const SAMPLES = 150;
const seen = new Map();

function noted(model, now) {
  if (!seen.has(model.name)) seen.set(model.name, []);
  const samples = seen.get(model.name);
  if (samples.length && model.events < samples.at(-1).events) samples.length = 0;
  samples.push({ t: now, events: model.events ?? 0, v: model.rolling_accuracy });
  if (samples.length > SAMPLES) samples.shift();
  return samples;
}

function perSecond(samples) {
  const from = samples.at(-3) ?? samples[0];
  const last = samples.at(-1);
  return last.t > from.t ? (1000 * (last.events - from.events)) / (last.t - from.t) : null;
}

function row(model, now) {
  const samples = noted(model, now);
  const rolling = model.rolling_accuracy;
  const accuracy = model.judged ? 1 - model.mistakes / model.judged : null;
  const link = h("a", { href: `#/m/${encodeURIComponent(model.name)}` }, model.name);
  if (model.problem) {
    return h("tr", null, h("th", { scope: "row" }, link), h("td", { class: "soft" }, model.learner), h("td", { colspan: 8, class: "wrong" }, model.problem));
  }
  const drifts = model.drifts
    ? h("span", { class: "badge drift", title: `last ${ago(model.drifts_at_ms.at(-1))}` }, counted(model.drifts, "drift"))
    : null;
  const cells = [
    h("th", { scope: "row" }, link, model.stream === model.name ? null : h("span", { class: "soft" }, ` on ${model.stream}`)),
    h("td", null, h("span", { class: "badge" }, model.learner), model.frozen ? h("span", { class: "badge cold" }, "frozen") : null),
    h("td", { class: "num" }, count(model.events)),
    h("td", { class: "num" }, rate(perSecond(samples))),
    h("td", { class: "num" }, percent(accuracy)),
    h("td", { class: "num strong" }, percent(rolling)),
    h("td", null, sparkline(samples, model.drifts_at_ms, `recent accuracy ${percent(rolling)}`)),
    h("td", { class: "num" }, count(model.mistakes)),
    h("td", null, drifts),
    h("td", { class: "num soft", title: model.events ? `last event ${ago(model.at_ms)}` : null }, span(model.stale_s)),
  ];
  cells.forEach((cell, i) => { cell.dataset.column = COLUMNS[i][0]; }); // for narrow screens
  return h("tr", null, cells);
}

const COLUMNS = [
  ["Model", ""],
  ["Learner", ""],
  ["Events", "num"],
  ["Per s", "num"],
  ["Accuracy", "num"],
  ["Recent", "num", "accuracy of the newest events: those of the rolling accuracy in its spec, else at least 200"],
  ["Trend", "", "recent accuracy since this page was opened"],
  ["Mistakes", "num"],
  ["Drift", ""],
  ["Log read", "num", "how long ago this worker last read the log"],
];

function empty() {
  return h(
    "div",
    { class: "empty" },
    h("p", null, "There are no models yet. Watch one learn:"),
    h("p", { class: "row center" }, EXAMPLES.map((one) => h("a", { class: "button", href: `#/play/${one.key}` }, one.title))),
    h("p", null, "or ", h("a", { href: "#/new" }, "create one"), " and send it events."),
  );
}

/** The view. */
export function overviewView(_, signal) {
  const rows = h("tbody");
  const table = h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": "Models" },
    h("table", { class: "models" }, h("thead", null, h("tr", null, COLUMNS.map(([name, kind, title]) => h("th", { class: kind, scope: "col", title: title ?? null }, name)))), rows),
  );
  const filter = h("input", { type: "search", placeholder: "Find by name", "aria-label": "Find a model by name" });
  const note = h("p", { class: "soft", role: "status" });
  const key = h("p", { class: "soft" }, "Accuracy is that of all events. Recent is that of the newest: those of the rolling accuracy in the spec, else at least 200. Trend shows it since this page was opened.");
  const tiles = new Map();
  const totals = h("dl", { class: "tiles", hidden: true }, ["Models", "Events", "Events per s", "Mistakes", "Drifts"].map((one) => {
    tiles.set(one, h("dd", null, "–"));
    return h("div", { class: "tile" }, h("dt", null, one), tiles.get(one));
  }));

  function sumUp(found) {
    const sum = (of) => found.models.reduce((total, model) => total + (of(model) ?? 0), 0);
    const streams = new Map(found.models.filter((model) => !model.problem).map((model) => [model.stream, perSecond(seen.get(model.name))]));
    say(tiles.get("Models"), count(found.total));
    say(tiles.get("Events"), count(sum((model) => model.events)));
    say(tiles.get("Events per s"), rate([...streams.values()].reduce((total, one) => total + (one ?? 0), 0)));
    say(tiles.get("Mistakes"), count(sum((model) => model.mistakes)));
    say(tiles.get("Drifts"), count(sum((model) => model.drifts)));
    totals.hidden = found.total === 0;
  }

  const body = h("div", null, h("p", { class: "soft" }, "Looking…"));

  async function refresh() {
    try {
      const found = await get(`v1/overview?count=50&match=${encodeURIComponent(filter.value)}`, signal);
      const none = found.total === 0 && filter.value === "";
      put(rows, found.models.map((model) => row(model, Date.now())));
      sumUp(found);
      const wanted = none ? "none" : "table";
      if (body.dataset.shows !== wanted) {
        body.dataset.shows = wanted;
        put(body, none ? empty() : table);
        key.hidden = none;
      }
      const hidden = found.total - found.models.length;
      say(note, hidden > 0 ? `${count(hidden)} more match; type a part of the name.` : found.total === 0 && !none ? "No model has this in its name." : "");
    } catch (error) {
      if (error instanceof Problem) say(note, error.message);
      throw error;
    }
  }

  filter.addEventListener("input", () => refresh().catch(() => undefined));
  every(EVERY_MS, refresh, signal);
  return h(
    "div",
    null,
    h("div", { class: "headline" }, h("h1", null, "Models"), h("span", { class: "grow" }), filter, h("a", { class: "button main", href: "#/new" }, "Create a model")),
    totals,
    body,
    note,
    key,
  );
}
