// The largest weights, as they move.

import { Bars } from "../charts/bars.js";
import { legend } from "../charts/marks.js";
import { card, h, put, say } from "../dom.js";
import { label, signed } from "../format.js";

const MOST = 14;

/** What a weights message says for one class or expert; for a binary model there is only one. */
function vectors(weights) {
  if (weights.classes) return Object.entries(weights.classes).map(([name, one]) => [label(name), one]);
  if (weights.experts) return weights.experts.map((one, i) => [`expert ${i + 1}, trust ${(100 * one.trust).toFixed(0)}%`, one]);
  return [["", weights]];
}

/** A bar chart of the largest weights. */
export function weightsPanel() {
  const bars = new Bars({ title: "The largest weights" });
  const choice = h("select", { "aria-label": "Class of the weights" });
  const intercept = h("p", { class: "soft" });
  const sides = h("p", { class: "sides" });
  choice.hidden = true;
  let shown = null;

  function draw() {
    const all = vectors(shown);
    choice.hidden = all.length < 2;
    if (choice.options.length !== all.length) put(choice, all.map(([name], i) => h("option", { value: i }, name)));
    [...choice.options].forEach((option, i) => say(option, all[i][0]));
    const [, one] = all[Math.max(0, choice.selectedIndex)] ?? all[0] ?? ["", { weights: {}, intercept: 0 }];
    const largest = Object.entries(one.weights).sort(([, a], [, b]) => Math.abs(b) - Math.abs(a)).slice(0, MOST);
    bars.draw(largest);
    say(intercept, largest.length ? `The length of a bar is the weight: 1 of the feature adds this to the score. Intercept ${signed(one.intercept)}.` : "No weights yet: they come with the first update.");
  }

  choice.addEventListener("change", draw);
  return {
    node: card("Largest weights", null, choice, sides, bars.node, intercept),
    update({ weights, info }) {
      if (info && info.classes.length === 2 && !sides.childElementCount) {
        put(sides, legend(info.classes, (one, i) => `${label(one)} to the ${i ? "right" : "left"}`));
      }
      if (!weights || weights === shown) return;
      shown = weights;
      draw();
    },
  };
}
