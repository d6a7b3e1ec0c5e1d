// Margins before learning: confidence and correctness.

import { Histogram } from "../charts/histogram.js";
import { card, h, say } from "../dom.js";
import { count } from "../format.js";

/** A histogram of the latest margins. */
export function marginsPanel() {
  const chart = new Histogram({ title: "Margins" });
  const note = h("p", { class: "soft" });
  const node = card("Margins", null, chart.node, note);
  return {
    node,
    update({ history, info }) {
      if (!info) return;
      const none = history.margins.length === 0;
      chart.node.hidden = none;
      say(note, none
        ? "Margins are shown as events come in while this page is open. Only linear models of two labels have them."
        : `The last ${count(history.margins.length)} events seen here. Below 0, in red, the label was wrong; from 1 on, the dashed line, the hinge loss is 0.`);
      chart.draw(history.margins);
    },
  };
}
