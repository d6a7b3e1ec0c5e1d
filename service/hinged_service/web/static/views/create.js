// Create a model: a form made from the schema of its spec, as the service describes it.

import { call, get, modelPath, Problem } from "../api.js";
import { card, h, put, say } from "../dom.js";
import { FormFault, Forms } from "../form.js";

const FIRST = ["learner", "pipeline", "labels", "stream", "metrics"];

function clear(form) {
  for (const node of form.querySelectorAll("[aria-invalid]")) {
    node.removeAttribute("aria-invalid");
  }
  for (const node of form.querySelectorAll(".fault")) node.remove();
}

/** Show a fault at its field, or at the nearest that holds it; return that field. */
function showAt(form, path, reason) {
  const parts = path.split(".");
  while (parts.length) {
    const wanted = parts.join(".");
    const found = [...form.querySelectorAll("[data-path]")].find((node) => node.dataset.path === wanted);
    if (found) {
      found.setAttribute("aria-invalid", "true");
      const text = found.dataset.path === path ? reason : `${path}: ${reason}`;
      const fault = h("p", { class: "wrong fault", role: "alert" }, text);
      if (found.tagName === "FIELDSET") found.querySelector("legend").after(fault);
      else found.after(fault);
      return found.tagName === "FIELDSET" ? found.querySelector("input, select, textarea, button") : found;
    }
    parts.pop();
  }
  return null;
}

function build(schemas, signal) {
  const forms = new Forms(schemas);
  const schema = schemas.ModelSpec;
  const first = forms.object(schema, "", null, FIRST);
  const rest = forms.object(schema, "", null, Object.keys(schema.properties).filter((key) => !FIRST.includes(key)));
  const name = h("input", { id: "new-name", required: true, maxlength: 128, spellcheck: "false", autocomplete: "off", "aria-describedby": "new-name-help" });
  name.dataset.path = "model";
  const wrong = h("p", { class: "wrong", role: "alert" });
  const preview = h("pre", { tabindex: 0 });
  const read = () => ({ ...first.read(), ...rest.read() });
  const show = () => {
    try {
      say(preview, `PUT /v1/models/${name.value || "…"}\n\n${JSON.stringify(read(), null, 2)}`);
    } catch (error) {
      if (!(error instanceof FormFault)) throw error;
      say(preview, `${error.path} ${error.message}`);
    }
  };

  async function submit(event) {
    event.preventDefault();
    clear(form);
    say(wrong, "");
    try {
      await call("PUT", modelPath(name.value.trim()), read(), signal);
      location.hash = `#/m/${encodeURIComponent(name.value.trim())}`;
    } catch (error) {
      const faults = error instanceof FormFault ? [{ field: error.path, reason: error.message }] : error.errors;
      if (!(error instanceof Problem) && !(error instanceof FormFault)) throw error;
      const unplaced = [];
      let focus = null;
      for (const one of faults) {
        const node = showAt(form, one.field, one.reason);
        if (node === null) unplaced.push(`${one.field}: ${one.reason}`);
        focus ??= node;
      }
      say(wrong, [error instanceof Problem && (faults.length === 0 || unplaced.length) ? error.message : "", ...unplaced].join(" "));
      focus?.focus();
    }
  }

  const form = h(
    "form",
    { onsubmit: submit, novalidate: true },
    h("div", { class: "formrow" },
      h("label", { for: "new-name" }, "name"), name,
      h("p", { class: "help", id: "new-name-help" }, "Letters, digits, . _ and -; it is the model's address.")),
    first.node,
    h("details", null, h("summary", null, "More: drift, where it starts, late labels, retention"), rest.node),
    h("div", { class: "row" }, h("button", { type: "submit", class: "main" }, "Create"), wrong),
  );
  form.addEventListener("input", show);
  form.addEventListener("change", show);
  form.addEventListener("click", () => queueMicrotask(show));
  show();
  return h("div", { class: "columns" }, card("Spec", null, form), card("Request", null, preview));
}

/** The view. */
export function createView(_, signal) {
  const body = h("div", null, h("p", { class: "soft" }, "Reading the schema…"));
  get("openapi.json", signal)
    .then((document) => put(body, build(document.components.schemas, signal)))
    .catch((error) => {
      if (!(error instanceof Problem)) throw error;
      put(body, h("p", { class: "wrong" }, error.message));
    });
  return h("div", null, h("div", { class: "headline" }, h("h1", null, "Create a model")), body);
}
