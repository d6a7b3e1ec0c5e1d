// A small line without axes, for tables.

import { s } from "../dom.js";
import { extent, linear } from "./scale.js";

/** A line of values `{t, v}` with marks at times. */
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
