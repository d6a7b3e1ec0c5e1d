// Predictions that waited for their labels: how many got one, and how long it took.

import { LineChart } from "../charts/line.js";
import { card, h, put } from "../dom.js";
import { count, NONE, percent, span } from "../format.js";

/** Label coverage and delay. */
export function labelsPanel() {
  const list = h("dl", { class: "facts" });
  const bar = h("div", { class: "meter", role: "img" }, h("span"));
  const chart = new LineChart({
    title: "Label delay", lines: [{ key: "delay", label: "mean delay of a label", sparse: true }], yTitle: "Seconds", format: (value, digits = 3) => (Number.isFinite(value) ? value.toFixed(digits) : NONE), from: 0, height: 170, empty: "",
  });
  const none = h("p", { class: "soft" }, "No prediction waits for a label. Predict with an id, and send the label with the same id when it is known.");
  return {
    node: card("Labels that come later", null, none, bar, list, chart.node),
    update({ info, history }) {
      chart.node.hidden = !history.samples.some((one) => Number.isFinite(one.delay));
      if (!chart.node.hidden) chart.draw(history.samples, history.marks);
      const labels = info?.label_counts;
      none.hidden = Boolean(labels);
      bar.hidden = !labels;
      if (!labels) return;
      const facts = [
        ["Coverage", labels.coverage === null ? "none is settled yet" : percent(labels.coverage)],
        ["Mean delay", span(labels.mean_delay_s)],
        ["Longest delay", span(labels.longest_delay_s)],
        ["Waiting", count(labels.waiting)],
        ["Labelled", count(labels.joined)],
        ["Expired", count(labels.expired)],
        ["Default label used", count(labels.defaulted)],
        ["Too late", count(labels.late)],
        ["Served and wrong", `${count(labels.served_mistakes)} of ${count(labels.served)}`],
      ];
      bar.setAttribute("aria-label", `${percent(labels.coverage)} of the settled predictions got a label`);
      bar.firstChild.style.width = percent(labels.coverage ?? 0);
      put(list, facts.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))));
    },
  };
}
