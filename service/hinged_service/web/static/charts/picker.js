// One place of a chart, chosen by the pointer or the arrow keys, and its numbers.

import { announce, h, say } from "../dom.js";

/** A readout for `svg`, whose `changed` draws it again; `node` shows the numbers. */
export class Picker {
  constructor(svg, changed) {
    Object.assign(this, { places: [], at: null, chosen: null });
    this.node = h("p", { class: "readout", "aria-hidden": "true" });
    const move = (at) => { this.at = at; changed(); };
    svg.setAttribute("tabindex", "0");
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      move({ x: event.clientX - box.left, y: event.clientY - box.top });
    });
    svg.addEventListener("pointerleave", () => move(null));
    svg.addEventListener("blur", () => move(null));
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step || !this.places.length) return;
      event.preventDefault();
      move(this.#beside(step));
      announce(this.node.textContent);
    });
  }

  /** Return the place nearest to what is pointed at; without `y` only `x` counts. */
  choose(places, text) {
    const far = ({ x, y }) => Math.hypot(x - this.at.x, y === undefined ? 0 : y - this.at.y);
    this.places = places;
    this.chosen = this.at === null || !places.length ? null : places.reduce((a, b) => (far(b) < far(a) ? b : a));
    say(this.node, this.chosen === null ? "" : text(this.chosen));
    return this.chosen;
  }

  /** The next place to one side that lies elsewhere; from nowhere the last one. */
  #beside(step) {
    const { places, chosen } = this;
    if (chosen === null) return places.at(-1);
    let next = places.indexOf(chosen);
    while (places[next + step] && places[next].x === chosen.x && places[next].y === chosen.y) next += step;
    return places[next];
  }
}
