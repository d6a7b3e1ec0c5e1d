// The latest events with their outcome.

import { card, h, put, say } from "../dom.js";
import { cut, label, moment, number, signed } from "../format.js";
import { FEED } from "./curves.js";

const ROWS = 14;
const SHOWN = 20;
const COLUMNS = ["Time", "Features", "Label", "Predicted", "Score", "Outcome"];
const TODAY = "Events from before this page was opened are predicted again by the present model, which would be right or wrong. The accuracy counts their first predictions.";

function features(x) {
  if (!x) return "";
  return cut(Object.entries(x).slice(0, SHOWN).map(([name, value]) => `${name} ${typeof value === "number" ? number(value) : JSON.stringify(value)}`).join(", "), 160);
}

function verdict(one) {
  const mistake = one.mistake ?? (one.past ? one.y_pred !== one.y : false);
  if (one.past) return h("span", { class: mistake ? "badge bad" : "badge" }, mistake ? "would be wrong" : "would be right");
  return [h("span", { class: mistake ? "badge bad" : "badge good" }, mistake ? "mistake" : "right"), one.updated ? h("span", { class: "badge" }, "update") : null];
}

function row(one) {
  const cells = [
    h("td", { class: "soft" }, moment(one.at_ms)),
    h("td", { class: "features", title: one.id ? `id ${one.id}` : null }, features(one.x)),
    h("td", null, label(one.y)),
    h("td", null, label(one.y_pred)),
    h("td", { class: "num" }, one.score === null ? "–" : signed(one.score)),
    h("td", null, verdict(one)),
  ];
  cells.forEach((cell, i) => { cell.dataset.column = COLUMNS[i]; }); // for narrow screens
  return h("tr", null, cells);
}

/** A table of the latest events. */
export function eventsPanel() {
  const rows = h("tbody");
  let newest = null;
  const note = h("p", { class: "soft" }, FEED);
  const table = h(
    "table",
    { class: "latest", hidden: true },
    h("thead", null, h("tr", null, COLUMNS.map((name) => h("th", { scope: "col", class: name === "Score" ? "num" : null }, name)))),
    rows,
  );
  return {
    node: card("Latest events", null, h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Latest events" }, table), note),
    update({ history }) {
      const last = history.outcomes.at(-1);
      if (last === newest) return;
      newest = last;
      const shown = history.outcomes.slice(-ROWS).reverse();
      table.hidden = shown.length === 0;
      say(note, shown.length === 0 ? FEED : shown.some((one) => one.past) ? TODAY : "");
      put(rows, shown.map(row));
    },
  };
}
