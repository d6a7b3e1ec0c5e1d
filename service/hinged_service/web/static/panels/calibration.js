// Whether the probabilities are those of the labels.

import { ReliabilityChart } from "../charts/reliability.js";
import { card, h, say } from "../dom.js";
import { isMulticlass } from "../features.js";
import { label, number } from "../format.js";

/** The value of a metric, of all events or rolling: `[its name in the report, the value]`. */
function reported(metrics, metric) {
  return Object.entries(metrics).find(([name, value]) =>
    (name === metric || name.startsWith(`rolling_${metric}_`)) && value !== null && value.error === undefined);
}

/** Mean distance between predicted probability and observed share, over all events of the bins. */
function gap(bins) {
  const events = bins.reduce((sum, bin) => sum + bin.events, 0);
  return bins.reduce((sum, bin) => sum + bin.events * Math.abs(bin.probability - bin.share), 0) / events;
}

/** A reliability diagram, if the spec of the model asks for the metric. */
export function calibrationPanel() {
  const chart = new ReliabilityChart({
    title: "Calibration",
    xTitle: "Predicted probability",
    yTitle: "Observed share",
  });
  const note = h("p", { class: "soft" });
  return {
    node: card("Calibration", null, chart.node, note),
    update({ history, info }) {
      if (!info) return;
      const metrics = { ...info.metrics, ...history.metrics?.metrics };
      const found = reported(metrics, "reliability");
      chart.node.hidden = found === undefined;
      if (found === undefined) {
        say(note, "With the metric reliability in its spec a model shows how often its predictions are right, by their probability.");
        return;
      }
      const [name, bins] = found;
      const loss = reported(metrics, "log_loss");
      const whose = isMulticlass(info.spec) ? "the predicted label" : `the label ${label(info.classes[1])}`;
      const which = name === "reliability" ? "All events" : `The newest ${name.split("_").at(-1)} events`;
      say(note, `${which}, by the probability of ${whose}. Calibration error ${number(gap(bins))}${loss ? `, log loss ${number(loss[1])}` : ""}.`);
      chart.draw(bins);
    },
  };
}
