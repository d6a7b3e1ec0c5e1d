// A form made from a JSON schema: each part knows how to read itself and where it stands.
//
// A part is `{node, read}`; `read()` returns its value, or undefined if it is left as it is by
// default. What the form cannot take apart is asked for as JSON.

import { freshId, h, put } from "./dom.js";
import { offered } from "./learners.js";

/** A fault that the form itself finds. */
export class FormFault extends Error {
  constructor(path, reason) {
    super(reason);
    this.path = path;
  }
}

/** Make parts from schemas of one document. */
export class Forms {
  constructor(schemas) {
    this.schemas = schemas;
  }

  resolve(schema) {
    return schema.$ref ? this.schemas[schema.$ref.split("/").at(-1)] : schema;
  }

  /** The part for a schema; `about` may bring a description that the schema lacks. */
  part(given, path, name, about = {}) {
    const schema = { ...this.resolve(given), ...about };
    if (schema.oneOf && schema.discriminator) return this.#choice(schema, path, name);
    if (schema.not) return this.#values(schema, path, name);
    if (schema.anyOf) return this.#either(schema, path, name);
    if (schema.enum) return this.#select(schema, path, name);
    if (schema.type === "boolean") return this.#check(schema, path, name);
    if (schema.type === "number" || schema.type === "integer") return this.#number(schema, path, name);
    if (schema.type === "string") return this.#text(schema, path, name);
    if (schema.type === "object" && schema.properties) return this.object(schema, path, name);
    if (schema.type === "array" && schema.items) return this.#list(schema, path, name);
    return this.#json(schema, path, name);
  }

  /** A group of the properties of an object, the `type` that tells its kind left out. */
  object(schema, path, name, only = null) {
    const parts = Object.entries(schema.properties)
      .filter(([key, one]) => one.const === undefined && (only === null || only.includes(key)))
      .map(([key, one]) => [key, this.part(one, `${path}${path && "."}${key}`, key, one.$ref && one.description ? { description: one.description } : {})]);
    const fixed = Object.entries(schema.properties).filter(([, one]) => one.const !== undefined);
    const fields = parts.map(([, part]) => part.node);
    const node = name === null ? h("div", { class: "group" }, fields) : h("fieldset", { class: "group", "data-path": path }, h("legend", null, name), help(schema), fields);
    const read = () => {
      const value = Object.fromEntries(fixed.map(([key, one]) => [key, one.const]));
      for (const [key, part] of parts) {
        const found = part.read();
        if (found !== undefined) value[key] = found;
      }
      return value;
    };
    return { node, read };
  }

  #field(control, schema, path, name) {
    control.id = freshId("field");
    const helps = freshId("help");
    control.setAttribute("aria-describedby", helps);
    control.dataset.path = path;
    return h("div", { class: "formrow" }, h("label", { for: control.id }, name), control, h("p", { class: "help", id: helps }, schema.description ?? ""));
  }

  #number(schema, path, name) {
    const bounds = [["min", schema.minimum ?? schema.exclusiveMinimum], ["max", schema.maximum ?? schema.exclusiveMaximum]];
    const input = h("input", { type: "number", step: schema.type === "integer" ? 1 : "any", placeholder: schema.default ?? "" });
    for (const [bound, value] of bounds) if (Number.isSafeInteger(value) || Math.abs(value) < 1e15) input.setAttribute(bound, value);
    const read = () => {
      if (input.validity.badInput) throw new FormFault(path, "must be a number");
      return input.value === "" ? undefined : Number(input.value);
    };
    return { node: this.#field(input, schema, path, name), read };
  }

  #text(schema, path, name) {
    const input = h("input", { placeholder: schema.default ?? "", maxlength: schema.maxLength, spellcheck: "false", autocomplete: "off" });
    return { node: this.#field(input, schema, path, name), read: () => (input.value === "" ? undefined : input.value) };
  }

  #check(schema, path, name) {
    const input = h("input", { type: "checkbox", checked: schema.default === true });
    const read = () => (input.checked === (schema.default === true) ? undefined : input.checked);
    return { node: this.#field(input, schema, path, name), read };
  }

  #select(schema, path, name) {
    const none = schema.default === undefined || schema.default === null;
    const select = h("select", null, none ? h("option", { value: "" }, "–") : null, schema.enum.map((one) => h("option", { value: JSON.stringify(one) }, String(one))));
    select.value = none ? "" : JSON.stringify(schema.default);
    const read = () => (select.value === "" || select.value === JSON.stringify(schema.default) ? undefined : JSON.parse(select.value));
    return { node: this.#field(select, schema, path, name), read };
  }

  #json(schema, path, name) {
    const area = h("textarea", { rows: 2, spellcheck: "false", placeholder: schema.default === undefined || schema.default === null ? "JSON" : JSON.stringify(schema.default) });
    const read = () => {
      if (area.value.trim() === "") return undefined;
      try {
        return JSON.parse(area.value);
      } catch (error) {
        throw new FormFault(path, `is not JSON: ${error.message}`);
      }
    };
    return { node: this.#field(area, schema, path, name), read };
  }

  /** One of several kinds, each with parameters of its own. */
  #choice(schema, path, name) {
    const kinds = Object.entries(schema.discriminator.mapping);
    const groups = offered(kinds.map(([kind]) => kind));
    const select = h("select", null, groups.map(([title, list]) => {
      const options = list.map(([kind, text]) => h("option", { value: kind }, text));
      return title ? h("optgroup", { label: title }, options) : options;
    }));
    const about = h("p", { class: "help" });
    const holder = h("div");
    let part = null;
    const show = () => {
      const kind = this.resolve({ $ref: schema.discriminator.mapping[select.value] });
      part = this.object(kind, path, null);
      put(holder, part.node);
      put(about, (kind.description ?? "").split("\n\n")[0]);
    };
    select.addEventListener("change", show);
    const first = this.#field(select, { description: schema.description }, `${path}.type`, name);
    show();
    return { node: h("fieldset", { class: "group", "data-path": path }, h("legend", null, name), first, about, holder), read: () => part.read() };
  }

  /** One of several forms, or nothing. */
  #either(schema, path, name) {
    const forms = schema.anyOf.map((one) => this.resolve(one));
    const real = forms.filter((one) => one.type !== "null");
    const about = { description: schema.description, default: schema.default };
    if (real.length === 1 && !real[0].properties) return this.part({ ...real[0], ...about }, path, name);
    if (real.every((one) => ["string", "integer", "boolean", "number"].includes(one.type) || one.const !== undefined || one.type === "array") && real.some((one) => one.type === "array")) return this.#values(schema, path, name);
    const titles = real.map((one) => (one.title?.replace(/Spec$/, "") ?? one.type) + (one.type === "number" ? " (a number)" : ""));
    const select = h("select", null, h("option", { value: "" }, "default"), real.map((one, i) => h("option", { value: i }, one.properties ? titles[i] : (one.enum ? "one of" : one.type))));
    const holder = h("div");
    let part = null;
    const show = () => {
      part = select.value === "" ? null : this.part(real[Number(select.value)], path, name);
      put(holder, part?.node ?? null);
    };
    select.addEventListener("change", show);
    if (real[0].type === "number" || real[0].type === "integer") { select.value = "0"; real[0] = { ...real[0], ...about, description: "" }; }
    show();
    return { node: h("div", null, this.#field(select, schema, `${path}.`, `${name}: form`), holder), read: () => part?.read() };
  }

  /** Several plain values, separated by commas. */
  #values(schema, path, name) {
    const input = h("input", { spellcheck: "false", autocomplete: "off", placeholder: "separated by commas" });
    const fixed = (schema.examples ?? []).filter((one) => typeof one === "string");
    const read = () => {
      const text = input.value.trim();
      if (text === "") return undefined;
      if (fixed.includes(text)) return text;
      const parts = text.split(",").map((one) => one.trim()).filter((one) => one !== "");
      const whole = parts.map((one) => (/^-?\d+$/.test(one) ? Number(one) : one === "true" ? true : one === "false" ? false : one));
      return new Set(whole.map((one) => typeof one)).size === 1 ? whole : parts;
    };
    return { node: this.#field(input, schema, path, name), read };
  }

  /** A list to which parts are added. */
  #list(schema, path, name) {
    const items = [];
    const list = h("ol", { class: "parts" });
    const add = h("button", { type: "button", class: "quiet" }, "Add one");
    const place = (part) => items.indexOf(part);
    const append = () => {
      const one = this.part(schema.items, `${path}.${items.length}`, `${name} ${items.length + 1}`);
      const drop = h("button", { type: "button", class: "quiet" }, "Remove");
      const item = { ...one, row: h("li", null, one.node, drop) };
      drop.addEventListener("click", () => {
        items.splice(place(item), 1);
        item.row.remove();
        renumber();
        add.focus();
      });
      items.push(item);
      list.append(item.row);
      item.row.querySelector("select, input, textarea")?.focus();
    };
    /** Let the fields say where they stand now, so that the service's findings reach them. */
    const renumber = () => items.forEach((item, i) => {
      for (const node of item.row.querySelectorAll("[data-path]")) {
        node.dataset.path = `${path}.${i}${node.dataset.path.slice(path.length + 1).replace(/^\d+/, "")}`;
      }
    });
    add.addEventListener("click", append);
    return {
      node: h("fieldset", { class: "group", "data-path": path }, h("legend", null, name), help(schema), list, add),
      read: () => (items.length ? items.map((item) => item.read() ?? null) : undefined),
    };
  }
}

function help(schema) {
  return schema.description ? h("p", { class: "help" }, schema.description.split("\n\n")[0]) : null;
}
