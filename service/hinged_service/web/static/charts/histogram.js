// How often values fell into equal bins, wrong ones (below zero) in another colour.

import { h, put, s } from "../dom.js";
import { count, counted, number } from "../format.js";
import { Picker } from "./picker.js";
import { extent, linear, ticks } from "./scale.js";

const MARGIN = { top: 8, right: 12, bottom: 38, left: 56 };
const BINS = 31;

/** A histogram of margins. */
export class Histogram {
  constructor({ title, height = 180 }) {
    Object.assign(this, { title, height });
    this.values = [];
    this.svg = s("svg", { role: "img", class: "chart" });
    this.picker = new Picker(this.svg, () => this.#render());
    this.node = h("div", { class: "plotarea" }, this.svg, this.picker.node);
    this.width = 0;
    new ResizeObserver(([entry]) => {
      this.width = Math.round(entry.contentRect.width);
      this.#render();
    }).observe(this.node);
  }

  draw(values) {
    this.values = values;
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = null; this.#render(); });
  }

  /** The range that holds all but the outermost values, zero in the middle of a bin's edge. */
  #range() {
    const sorted = [...this.values].sort((a, b) => a - b);
    const cut = Math.floor(sorted.length * 0.01);
    const [low, high] = extent(sorted.slice(cut, sorted.length - cut || undefined));
    const far = Math.max(Math.abs(low), Math.abs(high), 1);
    return [Math.max(-far, Math.min(low, -far * 0.25)), Math.min(far, Math.max(high, far * 0.25))];
  }

  #render() {
    if (!this.width || !this.svg.isConnected) return;
    const [low, high] = this.#range();
    const size = (high - low) / BINS;
    const first = Math.floor(low / size); // bins start at multiples, so that zero is an edge
    const bins = new Array(BINS + 2).fill(0);
    for (const value of this.values) {
      bins[Math.max(0, Math.min(bins.length - 1, Math.floor(value / size) - first))] += 1;
    }
    const x = linear([first * size, (first + bins.length) * size], [MARGIN.left, this.width - MARGIN.right]);
    const y = linear([0, Math.max(...bins, 1)], [this.height - MARGIN.bottom, MARGIN.top]);
    const edge = (i) => number((first + i) * size);
    const places = bins.map((n, i) => ({ x: x((first + i + 0.5) * size), n, i })).filter(({ n }) => n > 0);
    const chosen = this.picker.choose(places, ({ n, i }) => `margin ${edge(i)} to ${edge(i + 1)}: ${counted(n, "event")}`);
    const wrong = this.values.filter((value) => value < 0).length;
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.svg.setAttribute("height", this.height);
    put(
      this.svg,
      s("title", null, `${this.title}: ${this.values.length} events, ${wrong} below zero`),
      places.map(({ n, i }) => s("rect", {
        class: `bin${first + i < 0 ? " wrong" : ""}${i === chosen?.i ? " chosen" : ""}`,
        x: x((first + i) * size) + 0.5, width: Math.max(1, x(size) - x(0) - 1),
        y: y(n), height: y(0) - y(n),
      })),
      s(
        "g",
        { class: "axes", "aria-hidden": "true" },
        s("line", { x1: MARGIN.left, x2: this.width - MARGIN.right, y1: y(0), y2: y(0) }),
        ticks(0, Math.max(...bins, 1), 3).filter(Number.isInteger).map((n) => s("text", { x: MARGIN.left - 6, y: y(n) + 4, "text-anchor": "end" }, count(n))),
        ticks(low, high, this.width / 70).map((at) => s("text", { x: x(at), y: this.height - 22, "text-anchor": "middle" }, number(at))),
        s("text", { class: "name", x: (MARGIN.left + this.width - MARGIN.right) / 2, y: this.height - 4, "text-anchor": "middle" }, "Margin before learning"),
        s("text", { class: "name", x: 11, y: this.height / 2 - 14, "text-anchor": "middle", transform: `rotate(-90 11 ${this.height / 2 - 14})` }, "Events"),
        [0, 1].filter((at) => at >= low && at <= high).map((at) => s("line", { class: at ? "hinge" : "zero", x1: x(at), x2: x(at), y1: MARGIN.top, y2: y(0) })),
      ),
    );
  }
}
