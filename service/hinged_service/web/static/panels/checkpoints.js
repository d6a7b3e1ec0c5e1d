// Checkpoints, and the way back to them.

import { call, get, modelPath, Problem } from "../api.js";
import { announce, card, h, put, say } from "../dom.js";
import { ago, count, percent } from "../format.js";

/** A list of checkpoints with what can be done with each. */
export function checkpointsPanel(name, signal) {
  const rows = h("tbody");
  const says = h("p", { class: "soft", role: "status" });
  const field = h("input", { placeholder: "a name, if you like", "aria-label": "Name of the new checkpoint", maxlength: 128 });
  let known = "";

  async function act(work, done) {
    try {
      await work();
      say(says, done);
      announce(done);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      say(says, [error.message, ...error.errors.map((one) => `${one.field} ${one.reason}`)].join(" "));
    }
    await refresh();
  }

  function row(one) {
    const title = one.name ?? one.uid;
    const restore = () => act(() => call("POST", modelPath(name, "/restore"), { checkpoint: one.uid }), `The model is restored to ${title}.`);
    const drop = () => act(() => call("DELETE", modelPath(name, `/checkpoints/${encodeURIComponent(one.uid)}`)), `${title} is deleted.`);
    return h(
      "tr",
      null,
      h("th", { scope: "row" }, title, one.model === name ? null : h("span", { class: "soft" }, ` of ${one.model}`)),
      h("td", null, ago(one.created_ms)),
      h("td", { class: "num" }, count(one.events)),
      h("td", { class: "num" }, percent(accuracy(one))),
      h("td", { class: "row" },
        h("button", { type: "button", "aria-label": `Restore ${title}`, onclick: restore }, "Restore"),
        h("button", { type: "button", class: "quiet", "aria-label": `Delete ${title}`, onclick: drop }, "Delete")),
    );
  }

  function accuracy({ events, judged, mistakes }) {
    const of = judged ?? events; // an old one has no judged
    return of ? 1 - mistakes / of : null;
  }

  async function refresh() {
    const found = await get(modelPath(name, "/checkpoints"), signal);
    const state = JSON.stringify([found.map((one) => one.uid), Math.floor(Date.now() / 60000)]);
    if (state === known) return;
    known = state;
    put(rows, found.reverse().map(row));
    table.hidden = found.length === 0;
  }

  const table = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Checkpoints", hidden: true }, h(
    "table",
    { class: "checkpoints" },
    h("thead", null, h("tr", null, ["Checkpoint", "Made", "Events", "Accuracy"].map((one, i) => h("th", { scope: "col", class: i > 1 ? "num" : null }, one)))),
    rows,
  ));
  const form = h(
    "form",
    { class: "row", onsubmit: (event) => {
      event.preventDefault();
      const wanted = field.value.trim();
      field.value = "";
      act(() => call("POST", modelPath(name, "/checkpoints"), wanted ? { name: wanted } : {}), "The checkpoint is saved.");
    } },
    field,
    h("button", { type: "submit" }, "Keep the present state"),
  );
  return { node: card("Checkpoints", null, table, form, says), refresh, update() {} };
}
