// Observed shares by predicted probability, beside the diagonal where both are equal.

import { h, put, s } from "../dom.js";
import { counted, percent } from "../format.js";
import { Picker } from "./picker.js";
import { linear } from "./scale.js";

const MARGIN = { top: 10, right: 14, bottom: 40, left: 58 };
const TICKS = [0, 0.25, 0.5, 0.75, 1];

/** A reliability diagram; the larger a dot, the more events. */
export class ReliabilityChart {
  constructor({ title, xTitle, yTitle, height = 240 }) {
    Object.assign(this, { title, xTitle, yTitle, height });
    this.bins = [];
    this.svg = s("svg", { role: "img", class: "chart" });
    this.legend = h(
      "ul",
      { class: "legend" },
      h("li", { class: "c0" }, h("span", { class: "swatch" }), "this model, larger with more events"),
      h("li", { class: "c1" }, h("span", { class: "swatch" }), "perfectly calibrated"),
    );
    this.picker = new Picker(this.svg, () => this.#render());
    this.node = h("div", { class: "plot" }, this.legend, h("div", { class: "plotarea" }, this.svg, this.picker.node));
    this.width = 0;
    new ResizeObserver(([entry]) => {
      this.width = Math.round(entry.contentRect.width);
      this.#render();
    }).observe(this.node);
  }

  /** Show bins `{probability, share, events}` in order of the probability. */
  draw(bins) {
    this.bins = bins;
    this.#render();
  }

  #render() {
    if (!this.width || !this.svg.isConnected) return;
    const right = this.width - MARGIN.right;
    const bottom = this.height - MARGIN.bottom;
    const x = linear([0, 1], [MARGIN.left, right]);
    const y = linear([0, 1], [bottom, MARGIN.top]);
    const most = Math.max(...this.bins.map((bin) => bin.events), 1);
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.svg.setAttribute("height", this.height);
    const places = this.bins.map((bin) => ({ x: x(bin.probability), y: y(bin.share), bin }));
    const chosen = this.picker.choose(places, ({ bin }) => `told ${percent(bin.probability)} · came true ${percent(bin.share)} · ${counted(bin.events, "event")}`);
    const path = this.bins.map((bin, i) => `${i ? "L" : "M"}${x(bin.probability).toFixed(1)} ${y(bin.share).toFixed(1)}`).join("");
    put(
      this.svg,
      s("title", null, `${this.title}. ${this.bins.map((bin) => `told ${percent(bin.probability)}, came true ${percent(bin.share)}`).join("; ")}`),
      s(
        "g",
        { class: "axes", "aria-hidden": "true" },
        TICKS.map((at) => [
          s("line", { x1: MARGIN.left, x2: right, y1: y(at), y2: y(at) }),
          s("text", { x: MARGIN.left - 6, y: y(at) + 4, "text-anchor": "end" }, `${100 * at}%`),
          s("text", { x: x(at), y: bottom + 16, "text-anchor": "middle" }, `${100 * at}%`),
        ]),
        s("text", { class: "name", x: (MARGIN.left + right) / 2, y: this.height - 6, "text-anchor": "middle" }, this.xTitle),
        s("text", { class: "name", x: 0, y: 0, "text-anchor": "middle", transform: `translate(12 ${(MARGIN.top + bottom) / 2}) rotate(-90)` }, this.yTitle),
      ),
      s("path", { class: "line c1", d: `M${x(0)} ${y(0)}L${x(1)} ${y(1)}` }),
      s("path", { class: "line c0", d: path }),
      places.map((place) => s(
        "circle",
        { class: `dot c0${place === chosen ? " chosen" : ""}`, cx: place.x, cy: place.y, r: 2.5 + 4.5 * Math.sqrt(place.bin.events / most) },
      )),
    );
  }
}
