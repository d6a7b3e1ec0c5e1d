// Which view is shown, by the part of the address after the #, and the question for an API key.

import { askAgain, hasKey, onKeyWanted, storeKey } from "./api.js";
import { put } from "./dom.js";
import { createView } from "./views/create.js";
import { modelView } from "./views/model.js";
import { overviewView } from "./views/overview.js";
import { playView } from "./views/play.js";

const main = document.getElementById("main");
let leaving = new AbortController();

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function viewOf(path) {
  const [kind, name] = path.split("/").slice(1);
  if (kind === "m" && name) return [modelView, decoded(name)];
  if (kind === "new") return [createView, ""];
  if (kind === "play") return [playView, decoded(name ?? "")];
  return [overviewView, ""];
}

function show(first = false) {
  askAgain();
  leaving.abort();
  leaving = new AbortController();
  const path = location.hash.slice(1) || "/";
  const [view, name] = viewOf(path);
  for (const link of document.querySelectorAll(".top nav a")) {
    const here = link.getAttribute("href") === `#/${path.split("/")[1] ?? ""}`;
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const node = view(name, leaving.signal);
  put(main, node);
  const heading = main.querySelector("h1");
  document.title = `${heading?.textContent ?? "models"} · hinged`;
  window.scrollTo(0, 0);
  if (!first && heading) {
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  }
}

const dialog = document.getElementById("ask");
const key = document.getElementById("key");

function ask(why) {
  const field = document.getElementById("ask-key");
  document.getElementById("ask-wrong").textContent = why;
  field.value = "";
  dialog.returnValue = "";
  dialog.showModal();
  field.focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      const used = dialog.returnValue === "use" && field.value.trim() !== "";
      if (used) storeKey(field.value.trim());
      field.value = "";
      showKey(!used);
      resolve(used);
    }, { once: true });
  });
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address says which view is shown
  main.focus();
});

/** Set the label of the button: enter a key, or forget the present one. */
function showKey(wanted) {
  key.hidden = !hasKey() && !wanted;
  key.textContent = hasKey() ? "Forget the API key" : "Enter an API key";
}

onKeyWanted(ask);
showKey(false);
key.addEventListener("click", () => {
  storeKey(null);
  showKey(false);
  show();
});
window.addEventListener("hashchange", () => show());
show(true);
