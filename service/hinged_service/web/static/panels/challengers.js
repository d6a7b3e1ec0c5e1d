// The models of one stream, side by side: each event teaches and tests them all.

import { get, Problem } from "../api.js";
import { card, h, put, say } from "../dom.js";
import { count, NONE, percent } from "../format.js";

/** A table of the stream's models, the most accurate first. */
export function challengersPanel(name, signal) {
  const body = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Models of the stream" });
  const note = h("p", { class: "soft" });
  let stream = null;
  let own = name;

  function row(one, worst) {
    const error = one.accuracy === null || one.accuracy === undefined ? 0 : 1 - one.accuracy;
    const bar = h("span", { class: "share" });
    bar.style.width = percent(worst > 0 ? error / worst : 0);
    return h(
      "tr",
      { class: one.name === own ? "here" : null },
      h("th", { scope: "row" }, one.name === own ? one.name : h("a", { href: `#/m/${encodeURIComponent(one.name)}` }, one.name), h("span", { class: "soft" }, ` ${one.learner}`), one.aliases.map((alias) => h("span", { class: "badge" }, `alias ${alias}`))),
      one.problem ? h("td", { colspan: 3, class: "wrong" }, one.problem) : [
        h("td", { class: "num" }, count(one.events)),
        h("td", { class: "num" }, percent(one.accuracy)),
        h("td", { class: "num meter" }, one.accuracy === null ? NONE : percent(error, 2), h("span", { class: "track", "aria-hidden": "true" }, bar)),
      ],
    );
  }

  async function refresh() {
    if (stream === null) return;
    try {
      const found = await get(`v1/streams/${encodeURIComponent(stream)}`, signal);
      say(note, found.models.length > 1 ? "A bar is the share of errors: the shorter, the better. Models of different age compare only over the events that both have seen." : `No other model follows the stream ${stream}. Create one with "stream": ${JSON.stringify(stream)} to challenge this one.`);
      const worst = Math.max(...found.models.map((one) => 1 - (one.accuracy ?? 1)), 0);
      put(body, h(
        "table",
        { class: "stacked" },
        h("thead", null, h("tr", null, ["Model", "Events", "Accuracy", "Errors"].map((one, i) => h("th", { scope: "col", class: i ? "num" : null }, one)))),
        h("tbody", null, found.models.map((one) => row(one, worst))),
      ));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      say(note, error.message);
    }
  }

  return {
    node: card("Challengers", null, body, note),
    refresh,
    update({ info }) {
      if (!info || stream === (info.spec.stream ?? info.name)) return;
      stream = info.spec.stream ?? info.name;
      own = info.name;
      refresh();
    },
  };
}
