// Bars to the left and right of zero that glide to their new places.

import { h, say } from "../dom.js";
import { signed } from "../format.js";

const ROW_PX = 26;

/** A list of named values; the longest bar has the largest magnitude. */
export class Bars {
  constructor({ title }) {
    this.rows = new Map();
    this.list = h("ol", { class: "bars", "aria-label": title });
    this.node = h("div", { class: "plot" }, this.list);
  }

  /** Show `[name, value]` pairs in this order. */
  draw(pairs) {
    const largest = Math.max(...pairs.map(([, value]) => Math.abs(value)), 1e-300);
    const known = new Set(pairs.map(([name]) => name));
    for (const [name, row] of this.rows) {
      if (known.has(name)) continue;
      row.node.remove();
      this.rows.delete(name);
    }
    pairs.forEach(([name, value], place) => {
      const row = this.rows.get(name) ?? this.#added(name);
      const share = (Math.abs(value) / largest) * 50;
      row.node.style.transform = `translateY(${place * ROW_PX}px)`;
      row.bar.style.width = `${share}%`;
      row.bar.style.left = value < 0 ? `${50 - share}%` : "50%";
      row.bar.className = value < 0 ? "bar negative" : "bar positive";
      say(row.value, signed(value));
      if (this.list.children[place] !== row.node) this.list.insertBefore(row.node, this.list.children[place] ?? null);
    });
    this.list.style.height = `${pairs.length * ROW_PX}px`;
  }

  #added(name) {
    const bar = h("span", { class: "bar" });
    const value = h("span", { class: "value" });
    const node = h(
      "li",
      { class: "barrow" },
      h("span", { class: "name", title: name }, name),
      h("span", { class: "track", "aria-hidden": "true" }, bar),
      value,
    );
    const row = { node, bar, value };
    this.rows.set(name, row);
    return row;
  }
}
