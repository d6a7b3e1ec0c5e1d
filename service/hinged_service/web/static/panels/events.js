// The latest events with their outcome.

import { card, h, put } from "../dom.js";
import { clock, cut, label, number, signed } from "../format.js";

const ROWS = 14;
const SHOWN = 20;

function features(x) {
  if (!x) return "";
  return cut(Object.entries(x).slice(0, SHOWN).map(([name, value]) => `${name} ${typeof value === "number" ? number(value) : JSON.stringify(value)}`).join(", "), 160);
}

function verdict(one) {
  const mistake = one.mistake ?? (one.past ? one.y_pred !== one.y : false);
  if (one.past) return h("span", { class: mistake ? "badge bad" : "badge", title: "what it says now; what it said then is not known here" }, mistake ? "now wrong" : "now right");
  return [h("span", { class: mistake ? "badge bad" : "badge good" }, mistake ? "mistake" : "right"), one.updated ? h("span", { class: "badge" }, "update") : null];
}

function row(one) {
  return h(
    "tr",
    null,
    h("td", { class: "soft" }, clock(one.at_ms)),
    h("td", { class: "features", title: one.id ?? null }, features(one.x)),
    h("td", null, label(one.y)),
    h("td", null, label(one.y_pred)),
    h("td", { class: "num" }, one.score === null ? "–" : signed(one.score)),
    h("td", null, verdict(one)),
  );
}

/** A table of the latest events. */
export function eventsPanel() {
  const rows = h("tbody");
  let newest = null;
  const table = h(
    "table",
    null,
    h("thead", null, h("tr", null, ["Time", "Features", "Label", "Predicted", "Score", "Outcome"].map((name) => h("th", { scope: "col", class: name === "Score" ? "num" : null }, name)))),
    rows,
  );
  return {
    node: card("Latest events", null, h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Latest events" }, table)),
    update({ history }) {
      const last = history.outcomes.at(-1);
      if (last === newest) return;
      newest = last;
      put(rows, history.outcomes.slice(-ROWS).reverse().map(row));
    },
  };
}
