// Elements with attributes and children. Text is always set as text, never as HTML:
// nothing in this page parses markup, so a name full of HTML is shown as it is.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") node[name] = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** An HTML element; `onclick` and the like are listeners, strings are text. */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** An SVG element. */
export function s(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

/** Set the text of a node if it differs. */
export function say(node, text) {
  const wanted = String(text);
  if (node.textContent !== wanted) node.textContent = wanted;
}

/** Replace all children. */
export function put(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

let counter = 0;

/** An id that no other element has. */
export function freshId(prefix) {
  counter += 1;
  return `${prefix}-${counter}`;
}

/** Announce a text to a screen reader (`aria-live` polite). */
export function announce(text) {
  say(document.getElementById("said"), text);
}

/** A titled section. */
export function card(title, props, ...children) {
  const id = freshId("card");
  return h(
    "section",
    { ...props, class: `card ${props?.class ?? ""}`, "aria-labelledby": id },
    h("h2", { id }, title),
    ...children,
  );
}
