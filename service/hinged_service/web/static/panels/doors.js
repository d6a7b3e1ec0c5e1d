// Records that the model did not learn: duplicates and dead letters, by door and reason.

import { card, h, put } from "../dom.js";
import { count } from "../format.js";

/** Counts by door. */
export function doorsPanel() {
  const list = h("dl", { class: "facts" });
  const node = card("Records not learned", null, list);
  node.hidden = true;
  return {
    node,
    update({ info }) {
      const doors = Object.entries(info?.doors ?? {});
      node.hidden = doors.length === 0;
      put(list, doors.flatMap(([door, counts]) => Object.entries(counts).map(([what, n]) =>
        h("div", null, h("dt", null, `${door}, ${what}`), h("dd", null, count(n))))));
    },
  };
}
