// The picture that every lecture on perceptrons draws: events as points on a plane of two
// features, the sides of the decision in two colours, and the boundary between them. The model is
// asked on a grid of points, so the picture is true for every learner and pipeline.

import { h, put, s, say } from "../dom.js";
import { label, number } from "../format.js";
import { boundary, upsampled } from "./contour.js";
import { linear, ticks } from "./scale.js";

const MARGIN = { top: 10, right: 14, bottom: 36, left: 52 };
const FINE = 33;
const FEW = 20;
const GLIDE_MS = 450;
const SHAPES = {
  1: (x, y, r) => `M${x - r * 0.9} ${y - r * 0.9}h${r * 1.8}v${r * 1.8}h${-r * 1.8}z`,
  2: (x, y, r) => `M${x} ${y - r * 1.1}l${r} ${r * 1.9}h${-2 * r}z`,
  3: (x, y, r) => `M${x} ${y - r * 1.25}l${r * 1.25} ${r * 1.25}l${-r * 1.25} ${r * 1.25}l${-r * 1.25} ${-r * 1.25}z`,
};
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
    this.caption = s("title");
    this.canvas = h("canvas", { class: "shade", width: FINE, height: FINE, "aria-hidden": "true" });
    this.svg = s("svg", { role: "img", class: "chart over" }, this.caption, this.under, this.line, this.over);
    this.window = h("div", { class: "window" }, this.canvas);
    this.node = h("div", { class: "plot plane" }, this.window, this.svg);
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
    put(this.over, this.points.map((point) => this.#point(point, x, y)));
    this.#renderField();
  }

  #renderField() {
    if (!this.width || !this.svg.isConnected) return;
    const { x, y } = this.#scales();
    this.#paint(this.#colors());
    put(this.line, this.#boundary(x, y));
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

  #boundary(x, y) {
    if (!this.field?.binary) return [];
    const { values, n } = this.field;
    const px = linear([0, n - 1], [x(this.range.x[0]), x(this.range.x[1])]);
    const py = linear([0, n - 1], [y(this.range.y[0]), y(this.range.y[1])]);
    const path = boundary(values, n).map(([a, b, c, d]) =>
      `M${px(a).toFixed(1)} ${py(b).toFixed(1)}L${px(c).toFixed(1)} ${py(d).toFixed(1)}`).join("");
    return [s("path", { class: "boundary halo", d: path }), s("path", { class: "boundary", d: path })];
  }

  #point(point, x, y) {
    const which = Math.max(0, this.classes.findIndex((one) => one === point.label)) % 8;
    const [cx, cy] = [x(point.x), y(point.y)];
    const text = `${label(point.label)}: ${this.names[0]} ${number(point.x)}, ${this.names[1]} ${number(point.y)}${point.wrong ? ", predicted wrong" : ""}`;
    const props = { class: `point k${which}${point.wrong ? " wrong" : ""}${point.newest ? " newest" : ""}` };
    const r = this.points.length > FEW ? 5 : 9;
    const shape = which % 4 === 0 ? s("circle", { ...props, cx, cy, r }) : s("path", { ...props, d: SHAPES[which % 4](cx, cy, r) });
    shape.append(s("title", null, text));
    return shape;
  }
}
