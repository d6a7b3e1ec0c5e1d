// Lines over time, with marks of what happened, and a readout that follows the pointer.

import { h, put, s, say } from "../dom.js";
import { clock } from "../format.js";
import { extent, linear, ticks, timeTicks } from "./scale.js";

const MARGIN = { top: 10, right: 12, bottom: 22, left: 44 };
const SHORTEST_MS = 30_000;

/**
 * A chart of one or more lines.
 *
 * @param title what it shows, for those who cannot see it
 * @param lines each `{key, label, sparse?}`; `key` names a field of the samples, and a sparse line
 *   has values in few of them: they are joined and dotted
 * @param format how a value is written
 * @param range `[low, high]`, each a number or null for what the values need
 */
export class LineChart {
  constructor({ title, lines, format, range = [0, null], height = 180 }) {
    Object.assign(this, { title, lines, format, range, height });
    this.samples = [];
    this.marks = [];
    this.svg = s("svg", { role: "img", class: "chart" });
    this.readout = h("p", { class: "readout", "aria-hidden": "true" });
    this.legend = h("ul", { class: "legend" });
    this.node = h("div", { class: "plot" }, this.legend, this.svg, this.readout);
    this.width = 0;
    this.svg.addEventListener("pointermove", (event) => this.#point(event));
    this.svg.addEventListener("pointerleave", () => { this.pointed = null; this.#render(); });
    new ResizeObserver(([entry]) => {
      this.width = Math.round(entry.contentRect.width);
      this.#render();
    }).observe(this.node);
  }

  /** Show samples `{t, …}` in order of time and marks `{t, kind, text}`. */
  draw(samples, marks = []) {
    Object.assign(this, { samples, marks });
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = null; this.#render(); });
  }

  #point(event) {
    this.pointed = event.clientX - this.svg.getBoundingClientRect().left;
    this.#render();
  }

  #scales() {
    const last = this.samples.at(-1)?.t ?? Date.now();
    const first = Math.min(this.samples[0]?.t ?? last, last - SHORTEST_MS);
    const values = this.samples.flatMap((one) => this.lines.map((line) => one[line.key]));
    const [low, high] = extent(values, 0.08);
    const from = this.range[0] ?? low;
    const to = this.range[1] ?? Math.max(high, from + 1e-9);
    return {
      x: linear([first, last], [MARGIN.left, this.width - MARGIN.right]),
      y: linear([from, to], [this.height - MARGIN.bottom, MARGIN.top]),
      times: [first, last],
      values: [from, to],
    };
  }

  #render() {
    if (!this.width || !this.svg.isConnected) return;
    const { x, y, times, values } = this.#scales();
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.svg.setAttribute("height", this.height);
    put(
      this.svg,
      s("title", null, this.#summary()),
      this.#axes(x, y, times, values),
      this.marks.filter((mark) => mark.t >= times[0] && mark.t <= times[1]).map((mark) => this.#mark(mark, x)),
      this.lines.map((line, i) => [
        s("path", { class: `line c${i}`, d: this.#path(line, x, y) }),
        line.sparse ? this.#dots(line, i, x, y) : null,
      ]),
      this.#cursor(x, y),
    );
    this.#legend();
  }

  #summary() {
    const parts = this.lines.map((line) => `${line.label} ${this.format(this.#latest(line))}`);
    const marks = this.marks.length ? `; marks: ${this.marks.slice(-5).map((mark) => mark.text).join(", ")}` : "";
    return `${this.title}. Latest: ${parts.join(", ")}${marks}`;
  }

  #axes(x, y, times, values) {
    const right = this.width - MARGIN.right;
    const bottom = this.height - MARGIN.bottom;
    return s(
      "g",
      { class: "axes", "aria-hidden": "true" },
      ticks(values[0], values[1], this.height / 45).map((value) => [
        s("line", { x1: MARGIN.left, x2: right, y1: y(value), y2: y(value) }),
        s("text", { x: MARGIN.left - 6, y: y(value) + 4, "text-anchor": "end" }, this.format(value)),
      ]),
      timeTicks(times[0], times[1], this.width / 110).map((at) =>
        s("text", { x: x(at), y: bottom + 16, "text-anchor": "middle" }, clock(at))),
    );
  }

  #mark(mark, x) {
    const at = x(mark.t);
    return s(
      "g",
      { class: `mark ${mark.kind}` },
      s("title", null, `${mark.text}, ${clock(mark.t)}`),
      s("line", { x1: at, x2: at, y1: MARGIN.top, y2: this.height - MARGIN.bottom }),
      s("path", { d: `M${at - 4} ${MARGIN.top - 8}h8l-4 7z` }),
    );
  }

  #dots(line, i, x, y) {
    return this.samples.filter((one) => Number.isFinite(one[line.key])).map((one) =>
      s("circle", { class: `dot c${i}`, cx: x(one.t), cy: y(one[line.key]), r: 3.5 }));
  }

  #path(line, x, y) {
    let path = "";
    let pen = "M";
    for (const one of this.samples) {
      const value = one[line.key];
      if (value === null || value === undefined) {
        if (!line.sparse) pen = "M";
        continue;
      }
      path += `${pen}${x(one.t).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = "L";
    }
    return path;
  }

  #cursor(x, y) {
    if (this.pointed === null || this.pointed === undefined || !this.samples.length) {
      say(this.readout, "");
      return null;
    }
    const at = x.invert(this.pointed);
    const near = this.samples.reduce((a, b) => (Math.abs(b.t - at) < Math.abs(a.t - at) ? b : a));
    const parts = this.lines.map((line) => `${line.label} ${this.format(near[line.key])}`);
    const marks = this.marks.filter((mark) => Math.abs(x(mark.t) - this.pointed) < 6).map((mark) => mark.text);
    say(this.readout, [clock(near.t), ...parts, ...marks].join(" · "));
    return s(
      "g",
      { class: "cursor" },
      s("line", { x1: x(near.t), x2: x(near.t), y1: MARGIN.top, y2: this.height - MARGIN.bottom }),
      this.lines.map((line, i) => (Number.isFinite(near[line.key])
        ? s("circle", { class: `c${i}`, cx: x(near.t), cy: y(near[line.key]), r: 3.5 }) : null)),
    );
  }

  #legend() {
    const shown = this.lines.map((line) => !line.sparse || Number.isFinite(this.#latest(line)));
    if (this.legend.childElementCount !== this.lines.length) {
      put(this.legend, this.lines.map((line, i) =>
        h("li", { class: `c${i}` }, h("span", { class: "swatch" }), line.label, " ", h("b"))));
    }
    this.lines.forEach((line, i) => {
      this.legend.children[i].hidden = !shown[i];
      say(this.legend.children[i].querySelector("b"), this.format(this.#latest(line)));
    });
  }

  #latest(line) {
    const known = line.sparse ? this.samples.findLast((one) => one[line.key] !== undefined) : this.samples.at(-1);
    return known?.[line.key];
  }
}

/** A small line without axes, with marks; for tables. */
export function sparkline(values, marks, title) {
  const [w, height] = [120, 28];
  const known = values.filter((one) => one.v !== null);
  const svg = s("svg", { class: "spark", role: "img", viewBox: `0 0 ${w} ${height}`, width: w, height });
  svg.append(s("title", null, title));
  if (known.length < 2) return svg;
  const x = linear([known[0].t, known.at(-1).t], [2, w - 2]);
  const y = linear(extent(known.map((one) => one.v)), [height - 3, 3]);
  svg.append(
    s("path", { class: "line c0", d: known.map((one, i) => `${i ? "L" : "M"}${x(one.t).toFixed(1)} ${y(one.v).toFixed(1)}`).join("") }),
    ...marks.filter((t) => t >= known[0].t).map((t) => s("line", { class: "drift", x1: x(t), x2: x(t), y1: 0, y2: height })),
  );
  return svg;
}
