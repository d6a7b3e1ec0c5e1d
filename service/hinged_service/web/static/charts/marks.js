// The marks of classes: each of the first eight has a colour and a shape of its own.

import { h, s } from "../dom.js";
import { label } from "../format.js";

const MARKS = 8;
const SHAPES = [
  (r) => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`,
  (r) => `M${-r * 0.9} ${-r * 0.9}h${r * 1.8}v${r * 1.8}h${-r * 1.8}z`,
  (r) => `M0 ${-r * 1.1}l${r} ${r * 1.9}h${-2 * r}z`,
  (r) => `M0 ${-r * 1.25}l${r * 1.25} ${r * 1.25}l${-r * 1.25} ${r * 1.25}l${-r * 1.25} ${-r * 1.25}z`,
  (r) => `M0 ${r * 1.1}l${r} ${-r * 1.9}h${-2 * r}z`,
  (r) => `M${-r * 0.4} ${-r * 1.1}h${r * 0.8}v${r * 0.7}h${r * 0.7}v${r * 0.8}h${-r * 0.7}v${r * 0.7}h${-r * 0.8}v${-r * 0.7}h${-r * 0.7}v${-r * 0.8}h${r * 0.7}z`,
  (r) => `M${-r} ${-r}h${2 * r}l${-r * 0.8} ${r}l${r * 0.8} ${r}h${-2 * r}l${r * 0.8} ${-r}z`,
  (r) => `M${-r} ${-r}l${r} ${r * 0.8}l${r} ${-r * 0.8}v${2 * r}l${-r} ${-r * 0.8}l${-r} ${r * 0.8}z`,
];

/** The mark of the class of a number, at a place. */
export function mark(which, x, y, r, props = {}) {
  const kind = Math.max(0, which) % MARKS;
  return s("path", { ...props, class: `k${kind} ${props.class ?? ""}`, d: SHAPES[kind](r), transform: `translate(${x} ${y})` });
}

/** The legend of classes: `text` returns the text of a label beside its mark. */
export function legend(classes, text = label) {
  const shown = classes.slice(0, MARKS).map((one, i) => h(
    "span",
    null,
    s("svg", { width: 14, height: 14, viewBox: "-7 -7 14 14", "aria-hidden": "true" }, mark(i, 0, 0, 5)),
    text(one, i),
  ));
  const more = classes.length - shown.length;
  return more > 0 ? [...shown, h("span", { class: "soft" }, `and ${more} more, with the same marks again`)] : shown;
}
