// Lines over events or time, with marks of what happened, a readout that follows the pointer or the
// arrow keys, and zoom.

import { h, put, s, say } from "../dom.js";
import { count, moment } from "../format.js";
import { Picker } from "./picker.js";
import { extent, linear, texts, ticks, timeTicks } from "./scale.js";

const MARGIN = { top: 10, right: 14, bottom: 38, left: 62 };
const SHORTEST = { t: 30_000, events: 10 };
const DRAGGED_PX = 8;
const KINDS = ["drift", "command"];
const TITLES = { events: "Events learned", t: "Time" };

/** The outline of the shape above the line of a mark. */
function flag(kind, at, top) {
  return kind === "drift" ? `M${at - 4} ${top}h8l-4 7z` : `M${at - 3.5} ${top}h7v7h-7z`;
}

/**
 * A chart of one or more lines.
 *
 * @param title what it shows, for those who cannot see it
 * @param lines each `{key, label, sparse?}`; `key` names a field of the samples, and a sparse line
 *   has values in few of them: they are joined and dotted
 * @param yTitle name and unit of the values
 * @param format how a value is written, with so many digits
 * @param within `[low, high]` beyond which there are no values, each a number or null
 * @param from where the axis begins, if not with the values
 * @param empty what it says without values
 */
export class LineChart {
  constructor({ title, lines, yTitle, format, within = [0, null], from = null, empty, axis = "events", height = 200 }) {
    Object.assign(this, { title, lines, yTitle, format, within, from, axis, height });
    this.samples = [];
    this.marks = [];
    this.window = null; // `[from, to]` of the axis; `to` is null at the newest
    this.svg = s("svg", { role: "img", class: "chart" });
    this.picker = new Picker(this.svg, () => this.#render());
    this.legend = h("ul", { class: "legend" });
    this.nothing = h("p", { class: "nothing", hidden: true }, empty);
    this.nearer = h("button", { type: "button", class: "quiet small", "aria-label": `Zoom in on the newest: ${title}` }, "Zoom in");
    this.all = h("button", { type: "button", class: "quiet small", "aria-label": `Show all: ${title}` }, "Show all");
    this.other = h("button", { type: "button", class: "quiet small" }, this.#otherAxis());
    this.tools = h("span", { class: "tools" }, this.other, this.nearer, this.all);
    this.node = h("div", { class: "plot" }, h("div", { class: "charthead" }, this.legend, this.tools), this.nothing, h("div", { class: "plotarea" }, this.svg, this.picker.node));
    this.width = 0;
    this.#listen();
    new ResizeObserver(([entry]) => {
      this.width = Math.round(entry.contentRect.width);
      this.#render();
    }).observe(this.node);
  }

  /** Show samples `{t, events, …}` in their order and marks `{t, events, kind, text}`. */
  draw(samples, marks = []) {
    Object.assign(this, { samples, marks });
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = null; this.#render(); });
  }

  #listen() {
    const at = (event) => event.clientX - this.svg.getBoundingClientRect().left;
    this.svg.addEventListener("pointerleave", () => { this.dragged = null; this.#render(); });
    this.svg.addEventListener("pointerdown", (event) => { this.dragged = at(event); });
    this.svg.addEventListener("pointerup", (event) => {
      const ends = [this.dragged, at(event)].sort((a, b) => a - b);
      const far = this.dragged !== null && this.dragged !== undefined && ends[1] - ends[0] > DRAGGED_PX;
      this.dragged = null;
      if (far) this.#zoom(ends.map((px) => this.#scales().x.invert(px)));
      else this.#render();
    });
    this.svg.addEventListener("dblclick", () => this.#zoom(null));
    this.nearer.addEventListener("click", () => {
      const [low, high] = this.#ends();
      this.#zoom([high - (high - low) / 2, null]);
    });
    this.all.addEventListener("click", () => this.#zoom(null));
    this.other.addEventListener("click", () => {
      this.axis = this.axis === "t" ? "events" : "t";
      this.#zoom(null);
    });
  }

  #otherAxis() {
    return this.axis === "t" ? "By events" : "By time";
  }

  #zoom(window) {
    this.window = window;
    this.#render();
  }

  /** The first and last place on the axis that are shown. */
  #ends() {
    const last = this.samples.at(-1)?.[this.axis] ?? (this.axis === "t" ? Date.now() : 0);
    const first = this.axis === "events" ? 0 : Math.min(this.samples[0]?.t ?? last, last - SHORTEST.t);
    const [low, high] = this.window ?? [first, null];
    return [low, Math.max(high ?? last, low + (this.window ? 1e-9 : SHORTEST[this.axis]))];
  }

  #scales() {
    const ends = this.#ends();
    const here = this.samples.filter((one) => one[this.axis] >= ends[0] && one[this.axis] <= ends[1]);
    const shown = here.length > 1 ? here : this.samples.slice(-2);
    const values = shown.flatMap((one) => this.lines.map((line) => one[line.key]));
    const [low, high] = extent(values, 0.08);
    const [least, most] = this.within;
    const from = this.from ?? Math.max(low, least ?? low);
    const to = Math.max(Math.min(high, most ?? high), from + 1e-9);
    return {
      x: linear(ends, [MARGIN.left, this.width - MARGIN.right]),
      y: linear([from, to], [this.height - MARGIN.bottom, MARGIN.top]),
      shown,
      ends,
      values: [from, to],
    };
  }

  #render() {
    if (!this.width || !this.node.isConnected) return;
    const none = !this.samples.some((one) => one.events > 0 && this.lines.some((line) => Number.isFinite(one[line.key])));
    this.nothing.hidden = !none;
    this.svg.parentElement.hidden = this.legend.parentElement.hidden = none;
    if (none) return;
    const scales = this.#scales();
    const { x, y, ends, shown } = scales;
    const alone = shown.every((one) => one[this.axis] === shown[0][this.axis]); // no line without length
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.svg.setAttribute("height", this.height);
    put(
      this.svg,
      s("title", null, this.#summary()),
      this.#axes(scales),
      this.marks.filter((mark) => mark[this.axis] >= ends[0] && mark[this.axis] <= ends[1]).map((mark) => this.#mark(mark, x)),
      this.lines.map((line, i) => [
        s("path", { class: `line c${i}`, d: this.#path(line, scales) }),
        line.sparse || alone ? this.#dots(line, i, scales) : null,
      ]),
      this.#selection(),
      this.#cursor(scales),
    );
    this.all.disabled = this.window === null;
    this.nearer.disabled = this.samples.filter((one) => one[this.axis] >= (ends[0] + ends[1]) / 2).length < 3;
    say(this.other, this.#otherAxis());
    this.#legend();
  }

  #summary() {
    const parts = this.lines.map((line) => `${line.label} ${this.format(this.#latest(line))}`);
    const marks = this.marks.length ? `; marks: ${this.marks.slice(-5).map((mark) => mark.text).join(", ")}` : "";
    return `${this.title}. Latest: ${parts.join(", ")}${marks}`;
  }

  #axes({ x, y, ends, values }) {
    const right = this.width - MARGIN.right;
    const bottom = this.height - MARGIN.bottom;
    const whole = this.format === count; // a count has no fractions
    const rows = ticks(values[0], values[1], this.height / 50).filter((one) => !whole || Number.isInteger(one));
    const places = this.axis === "t"
      ? timeTicks(ends[0], ends[1], this.width / 110)
      : ticks(ends[0], ends[1], this.width / 90).filter(Number.isInteger);
    const named = this.axis === "t" ? places.map(moment) : texts(places, count);
    const middle = (MARGIN.top + bottom) / 2;
    return s(
      "g",
      { class: "axes", "aria-hidden": "true" },
      texts(rows, this.format).map((text, i) => [
        s("line", { x1: MARGIN.left, x2: right, y1: y(rows[i]), y2: y(rows[i]) }),
        s("text", { x: MARGIN.left - 6, y: y(rows[i]) + 4, "text-anchor": "end" }, text),
      ]),
      named.map((text, i) => s("text", { x: x(places[i]), y: bottom + 15, "text-anchor": "middle" }, text)),
      s("text", { class: "name", x: (MARGIN.left + right) / 2, y: this.height - 4, "text-anchor": "middle" }, TITLES[this.axis]),
      s("text", { class: "name", x: 11, y: middle, "text-anchor": "middle", transform: `rotate(-90 11 ${middle})` }, this.yTitle),
    );
  }

  #mark(mark, x) {
    const at = x(mark[this.axis]);
    return s(
      "g",
      { class: `mark ${mark.kind}` },
      s("title", null, `${mark.text}, after ${count(mark.events)} events, ${moment(mark.t)}`),
      s("line", { x1: at, x2: at, y1: MARGIN.top, y2: this.height - MARGIN.bottom }),
      s("path", { d: flag(mark.kind, at, MARGIN.top - 8) }),
    );
  }

  #dots(line, i, { x, y, shown }) {
    return shown.filter((one) => Number.isFinite(one[line.key])).map((one) =>
      s("circle", { class: `dot c${i}`, cx: x(one[this.axis]), cy: y(one[line.key]), r: 3.5 }));
  }

  #path(line, { x, y, shown }) {
    let path = "";
    let pen = "M";
    for (const one of shown) {
      const value = one[line.key];
      if (!Number.isFinite(value)) {
        if (!line.sparse) pen = "M";
        continue;
      }
      path += `${pen}${x(one[this.axis]).toFixed(1)} ${y(value).toFixed(1)}${pen === "M" ? "h0" : ""}`; // a dot if alone
      pen = "L";
    }
    return path;
  }

  #selection() {
    const pointed = this.picker.at?.x;
    if (this.dragged === null || this.dragged === undefined || pointed === undefined) return null;
    const [left, right] = [this.dragged, pointed].sort((a, b) => a - b);
    return s("rect", { class: "selection", x: left, width: right - left, y: MARGIN.top, height: this.height - MARGIN.top - MARGIN.bottom });
  }

  #cursor({ x, y, shown }) {
    const chosen = this.picker.choose(shown.map((near) => ({ x: x(near[this.axis]), near })), ({ x: at, near }) => {
      const parts = this.lines.filter((line) => Number.isFinite(near[line.key])).map((line) => `${line.label} ${this.format(near[line.key])}`);
      const marks = this.marks.filter((mark) => Math.abs(x(mark[this.axis]) - at) < 6).map((mark) => mark.text);
      return [`${count(near.events)} events`, moment(near.t), ...parts, ...marks].join(" · ");
    });
    if (chosen === null) return null;
    const { x: at, near } = chosen;
    return s(
      "g",
      { class: "cursor" },
      s("line", { x1: at, x2: at, y1: MARGIN.top, y2: this.height - MARGIN.bottom }),
      this.lines.map((line, i) => (Number.isFinite(near[line.key])
        ? s("circle", { class: `c${i}`, cx: at, cy: y(near[line.key]), r: 3.5 }) : null)),
    );
  }

  #legend() {
    const kinds = KINDS.filter((kind) => this.marks.some((mark) => mark.kind === kind));
    if (this.legend.childElementCount !== this.lines.length + kinds.length) {
      put(
        this.legend,
        this.lines.map((_, i) => h("li", { class: `c${i}` }, h("span", { class: "swatch" }), h("span"), " ", h("b"))),
        kinds.map((kind) => h("li", null, s("svg", { class: `mark ${kind}`, width: 10, height: 8, "aria-hidden": "true" }, s("path", { d: flag(kind, 4, 0) })), kind)),
      );
    }
    this.lines.forEach((line, i) => {
      const item = this.legend.children[i];
      item.hidden = line.sparse === true && !Number.isFinite(this.#latest(line));
      say(item.children[1], line.label);
      say(item.children[2], this.format(this.#latest(line)));
    });
  }

  #latest(line) {
    const known = line.sparse ? this.samples.findLast((one) => one[line.key] !== undefined) : this.samples.at(-1);
    return known?.[line.key];
  }
}
