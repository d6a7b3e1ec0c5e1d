// The picture that every lecture on perceptrons draws: events as points on a plane of two
// features, the sides of the decision in two colours, and the boundary between them. The model is
// asked on a grid of points, so the picture is true for every learner and pipeline.

import { h, put, s, say } from "../dom.js";
import { count, cut, label, number } from "../format.js";
import { boundary, upsampled } from "./contour.js";
import { mark } from "./marks.js";
import { Picker } from "./picker.js";
import { linear, ticks } from "./scale.js";

const MARGIN = { top: 10, right: 14, bottom: 36, left: 52 };
const FINE = 33;
const FEW = 20;
const GLIDE_MS = 450;
const LETTER_PX = 8;
const SMALL_REGION = 0.03; // of the plane: has no room for a name
const still = matchMedia("(prefers-reduced-motion: reduce)");

/** A plane. `draw` takes points, `answer` what the model says on a grid. */
export class Plane {
  constructor({ title, height = 380 }) {
    Object.assign(this, { title, height });
    this.points = [];
    this.range = { x: [0, 1], y: [0, 1] };
    this.names = ["", ""];
    this.classes = [];
    this.field = null;
    this.under = s("g");
    this.line = s("g");
    this.over = s("g");
    this.top = s("g");
    this.caption = s("title");
    this.canvas = h("canvas", { class: "shade", width: FINE, height: FINE, "aria-hidden": "true" });
    this.svg = s("svg", { role: "img", class: "chart over" }, this.caption, this.under, this.line, this.over, this.top);
    this.window = h("div", { class: "window" }, this.canvas);
    this.picker = new Picker(this.svg, () => this.#renderPoints());
    this.node = h("div", { class: "plotarea plane" }, this.window, this.svg, this.picker.node);
    this.width = 0;
    new ResizeObserver(([entry]) => {
      this.width = Math.round(entry.contentRect.width);
      this.#render();
    }).observe(this.node);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#render());
  }

  /**
   * Show points `{x, y, label, wrong, newest}`.
   *
   * @param names of the two features
   * @param range `{x: [low, high], y: [low, high]}`
   * @param classes the labels, for a binary model the negative one first
   */
  draw(points, names, range, classes) {
    if (names.join() !== this.names.join()) this.field = null;
    Object.assign(this, { points, names, range, classes });
    this.#render();
  }

  /** Show points only. */
  forget() {
    cancelAnimationFrame(this.gliding);
    this.field = null;
    this.#renderField();
  }

  /** Show what the model says on an n × n grid over the range: scores, or indices of classes. */
  answer({ n, values, binary }) {
    const fine = binary ? upsampled(values, n, FINE) : values;
    const size = binary ? FINE : n;
    const before = this.field?.binary && binary && !still.matches ? this.field.values : null;
    const began = performance.now();
    const step = (now) => {
      const share = Math.min(1, (now - began) / GLIDE_MS);
      const mixed = before ? fine.map((value, i) => before[i] + (value - before[i]) * share) : fine;
      this.field = { values: mixed, n: size, binary };
      this.#renderField();
      if (before && share < 1 && !document.hidden) this.gliding = requestAnimationFrame(step);
      else this.field.values = fine;
    };
    cancelAnimationFrame(this.gliding);
    step(before ? began : began + GLIDE_MS);
  }

  #colors() {
    const style = getComputedStyle(this.node);
    return Array.from({ length: 8 }, (_, i) => style.getPropertyValue(`--class-${i}`).trim());
  }

  #paint(colors) {
    const { canvas, field } = this;
    const context = canvas.getContext("2d");
    canvas.hidden = field === null;
    if (field === null) return;
    canvas.width = field.n;
    canvas.height = field.n;
    const [w, tall] = [this.width - MARGIN.left - MARGIN.right, this.height - MARGIN.top - MARGIN.bottom];
    const px = (value) => `${value}px`;
    Object.assign(this.window.style, { left: px(MARGIN.left), top: px(MARGIN.top), width: px(w), height: px(tall) });
    // The outermost points of the grid lie on the edge, so their cells reach beyond it.
    const [cell, row] = [w / (field.n - 1), tall / (field.n - 1)];
    Object.assign(canvas.style, { left: px(-cell / 2), top: px(-row / 2), width: px(w + cell), height: px(tall + row) });
    const far = field.binary ? Math.max(...field.values.map(Math.abs), 1e-12) : 1;
    field.values.forEach((value, i) => {
      const line = field.n - 1 - Math.floor(i / field.n); // the lowest is drawn last
      const which = field.binary ? Number(value > 0) : value;
      context.globalAlpha = field.binary ? 0.1 + 0.3 * Math.min(1, Math.abs(value) / far) : 0.3;
      context.fillStyle = colors[which % 8] || "transparent";
      if (value === -1 && !field.binary) return;
      context.fillRect(i % field.n, line, 1, 1);
    });
  }

  #render() {
    if (!this.width || !this.svg.isConnected) return;
    const { x, y } = this.#scales();
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.svg.setAttribute("height", this.height);
    say(this.caption, this.#summary());
    put(this.under, this.#axes(x, y));
    this.#renderPoints();
    this.#renderField();
  }

  #renderPoints() {
    if (!this.width || !this.svg.isConnected) return;
    const { x, y } = this.#scales();
    put(this.over, this.points.map((point) => this.#point(point, x, y)), this.#cursor(x, y));
  }

  #renderField() {
    if (!this.width || !this.svg.isConnected) return;
    const { x, y } = this.#scales();
    this.#paint(this.#colors());
    put(this.line, this.#boundary(x, y));
    put(this.top, this.#regions(x, y));
  }

  #scales() {
    return {
      x: linear(this.range.x, [MARGIN.left, this.width - MARGIN.right]),
      y: linear(this.range.y, [this.height - MARGIN.bottom, MARGIN.top]),
    };
  }

  #summary() {
    const wrong = this.points.filter((point) => point.wrong).length;
    return `${this.title}: ${this.names[0]} and ${this.names[1]} of ${this.points.length} events, `
      + `${wrong} of them on the wrong side`;
  }

  #axes(x, y) {
    const bottom = this.height - MARGIN.bottom;
    const right = this.width - MARGIN.right;
    return s(
      "g",
      { class: "axes", "aria-hidden": "true" },
      s("rect", { class: "box", x: MARGIN.left, y: MARGIN.top, width: right - MARGIN.left, height: bottom - MARGIN.top }),
      ticks(...this.range.x, this.width / 90).map((at) => s("text", { x: x(at), y: bottom + 15, "text-anchor": "middle" }, number(at))),
      ticks(...this.range.y, this.height / 60).map((at) => s("text", { x: MARGIN.left - 6, y: y(at) + 4, "text-anchor": "end" }, number(at))),
      s("text", { class: "name", x: (MARGIN.left + right) / 2, y: this.height - 4, "text-anchor": "middle" }, this.names[0]),
      s("text", { class: "name", x: 12, y: (MARGIN.top + bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(MARGIN.top + bottom) / 2})` }, this.names[1]),
    );
  }

  /** Scales of the grid that was answered. */
  #cells(x, y) {
    const last = this.field.n - 1;
    return [
      linear([0, last], [x(this.range.x[0]), x(this.range.x[1])]),
      linear([0, last], [y(this.range.y[0]), y(this.range.y[1])]),
    ];
  }

  #boundary(x, y) {
    if (!this.field) return [];
    const { values, n, binary } = this.field;
    const [px, py] = this.#cells(x, y);
    const fields = binary ? [values] : [...new Set(values)].map((one) => values.map((value) => (value === one ? 1 : -1)));
    const path = fields.flatMap((field) => boundary(field, n)).map(([a, b, c, d]) =>
      `M${px(a).toFixed(1)} ${py(b).toFixed(1)}L${px(c).toFixed(1)} ${py(d).toFixed(1)}`).join("");
    return [s("path", { class: "boundary halo", d: path }), s("path", { class: "boundary", d: path })];
  }

  /** The name of each predicted label, in the middle of where it is predicted. */
  #regions(x, y) {
    if (!this.field) return [];
    const { values, n, binary } = this.field;
    const [px, py] = this.#cells(x, y);
    const regions = new Map();
    values.forEach((value, i) => {
      const which = binary ? Number(value > 0) : value;
      if (!regions.has(which)) regions.set(which, []);
      regions.get(which).push([i % n, Math.floor(i / n)]);
    });
    const mean = (cells, axis) => cells.reduce((sum, cell) => sum + cell[axis], 0) / cells.length;
    return [...regions].filter(([which, cells]) => which in this.classes && cells.length > SMALL_REGION * n * n).map(([which, cells]) => {
      const middle = [mean(cells, 0), mean(cells, 1)];
      const far = (cell) => Math.hypot(cell[0] - middle[0], cell[1] - middle[1]);
      const [a, b] = cells.reduce((one, other) => (far(other) < far(one) ? other : one));
      const name = cut(label(this.classes[which]), 20);
      const room = name.length * LETTER_PX / 2;
      const at = Math.max(MARGIN.left + room, Math.min(this.width - MARGIN.right - room, px(a)));
      return s("text", { class: "region", x: at, y: py(b) + 4, "text-anchor": "middle" }, name);
    });
  }

  /** Lines to what the pointer or the keys choose; events at one place are told together. */
  #cursor(x, y) {
    const places = new Map();
    for (const point of this.points) {
      const at = `${x(point.x).toFixed(1)} ${y(point.y).toFixed(1)}`;
      if (!places.has(at)) places.set(at, { x: x(point.x), y: y(point.y), points: [] });
      places.get(at).points.push(point);
    }
    const sorted = [...places.values()].sort((a, b) => a.x - b.x || b.y - a.y);
    const chosen = this.picker.choose(sorted, ({ points }) => {
      const labels = new Map();
      for (const { label: one } of points) labels.set(one, (labels.get(one) ?? 0) + 1);
      const told = [...labels].map(([one, n]) => (n > 1 ? `${count(n)} × ${label(one)}` : label(one)));
      const wrong = points.filter((point) => point.wrong).length;
      const where = `${this.names[0]} ${number(points[0].x)}, ${this.names[1]} ${number(points[0].y)}`;
      return [told.join(", "), where, ...(wrong ? [`${count(wrong)} predicted wrong`] : [])].join(" · ");
    });
    if (chosen === null) return null;
    const { x: cx, y: cy } = chosen;
    return s(
      "g",
      { class: "cursor" },
      s("line", { x1: MARGIN.left, x2: cx, y1: cy, y2: cy }),
      s("line", { x1: cx, x2: cx, y1: cy, y2: this.height - MARGIN.bottom }),
    );
  }

  #point(point, x, y) {
    const which = this.classes.findIndex((one) => one === point.label);
    const r = this.points.length > FEW ? 5 : 9;
    const [cx, cy] = [x(point.x), y(point.y)];
    return [
      mark(which, cx, cy, r, { class: point.wrong ? "point wrong" : "point" }),
      point.newest && s("circle", { class: "ring", cx, cy, r: r + 5 }),
    ];
  }
}
