// The confusion matrix: true labels against predicted ones.

import { card, h, put, say } from "../dom.js";
import { count, label } from "../format.js";

const MOST = 12;

/** Rows and columns of the metric, if the spec asks for one, else of the outcomes seen here. */
function cells(history) {
  const metrics = history.metrics?.metrics ?? {};
  const found = new Map();
  const name = Object.keys(metrics).find((one) => one.endsWith("confusion_matrix") || one.includes("_confusion_matrix_"));
  if (name !== undefined && metrics[name]) {
    for (const [truth, row] of Object.entries(metrics[name])) {
      for (const [answer, n] of Object.entries(row)) found.set(JSON.stringify([truth, answer]), n);
    }
    return { found, all: true, cut: metrics[`${name}_classes`] };
  }
  for (const [key, n] of history.confusion) {
    found.set(JSON.stringify(JSON.parse(key).map(label)), n);
  }
  return { found, all: false };
}

/** A table of counts, darker where there are more. */
export function confusionPanel() {
  const body = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Confusion matrix" });
  const note = h("p", { class: "soft" });
  let drawn = null;
  return {
    node: card("Confusion", null, body, note),
    update({ history }) {
      const { found, all, cut } = cells(history);
      const state = JSON.stringify([...found]);
      if (state === drawn) return;
      drawn = state;
      const pairs = [...found].map(([key, n]) => [...JSON.parse(key), n]);
      const totals = new Map();
      for (const [truth, answer, n] of pairs) for (const one of [truth, answer]) totals.set(one, (totals.get(one) ?? 0) + n);
      const names = [...totals].sort((a, b) => b[1] - a[1]).slice(0, MOST).map(([name]) => name).sort();
      const largest = Math.max(...pairs.map(([, , n]) => n), 1);
      say(note, cut ? `Of the ${cut.shown} classes that occur most often, of ${count(cut.of)}.` : all ? "All events." : found.size === 0 ? "Counts of true and predicted labels come with the events that are learned while this page is open. With the metric confusion_matrix in its spec a model counts all." : "The outcomes shown here; with the metric confusion_matrix in its spec a model counts all.");
      put(body, names.length === 0 ? null : h(
        "table",
        { class: "confusion" },
        h("thead", null, h("tr", null, h("td", null, "truth ↓ predicted →"), names.map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", null, names.map((truth) => h("tr", null, h("th", { scope: "row" }, truth), names.map((answer) => {
          const n = found.get(JSON.stringify([truth, answer])) ?? 0;
          const cell = h("td", { class: truth === answer ? "right" : "wrong" }, h("span", null, count(n)));
          cell.style.setProperty("--share", String(Math.sqrt(n / largest)));
          return cell;
        })))),
      ));
    },
  };
}
