// Calls of the service. The API key, if the service wants one, lives in this tab's session only.

const KEY = "hinged.key";

/** A problem document of the service, or that it could not be reached. */
export class Problem extends Error {
  constructor(status, document) {
    super(document.detail ?? document.title ?? `The service answered ${status}.`);
    this.status = status;
    this.errors = document.errors ?? [];
  }
}

let askForKey = async () => false;
let asking = null;
let declined = false;

/** Set the function that asks the user for a key, stores it, and returns whether it did. */
export function onKeyWanted(ask) {
  askForKey = ask;
}

export function storeKey(key) {
  if (key) sessionStorage.setItem(KEY, key);
  else sessionStorage.removeItem(KEY);
}

/** Ask for a key again though the user did not want to give one. */
export function askAgain() {
  declined = false;
}

export function hasKey() {
  return sessionStorage.getItem(KEY) !== null;
}

function headers(more) {
  const key = sessionStorage.getItem(KEY);
  return { ...more, ...(key ? { authorization: `Bearer ${key}` } : {}) };
}

async function problemOf(answer) {
  try {
    return new Problem(answer.status, await answer.json());
  } catch {
    return new Problem(answer.status, {});
  }
}

/** Fetch; on 401 ask for a key, once for all calls that wait, and try again. */
async function fetched(path, options) {
  for (;;) {
    const used = sessionStorage.getItem(KEY);
    let answer;
    try {
      answer = await fetch(path, { ...options, headers: headers(options.headers), cache: "no-store" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Problem(0, { detail: "The service cannot be reached." });
    }
    if (answer.ok) return answer;
    const problem = await problemOf(answer);
    if (answer.status !== 401 || declined) throw problem;
    if (sessionStorage.getItem(KEY) === used) {
      asking ??= askForKey(used === null ? "" : problem.message).then((given) => {
        asking = null;
        declined = !given;
        return given;
      });
      if (!(await asking)) throw problem;
    }
  }
}

/** Make a call and return what it answers, parsed. */
export async function call(method, path, body, signal) {
  const options = { method, signal };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers = { "content-type": "application/json" };
  }
  try {
    const answer = await fetched(path, options);
    return answer.status === 204 ? null : await answer.json();
  } catch (error) {
    if (error.name === "AbortError") throw new Problem(0, { detail: "This view was left." });
    throw error;
  }
}

export const get = (path, signal) => call("GET", path, undefined, signal);

/** The path of a model. */
export function modelPath(name, part = "") {
  return `v1/models/${encodeURIComponent(name)}${part}`;
}

async function* messages(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const fields = {};
      for (const line of part.split("\n")) {
        const at = line.indexOf(":");
        if (at > 0) fields[line.slice(0, at)] = line.slice(at + 1).trimStart();
      }
      if (fields.event && fields.data) yield [fields.event, JSON.parse(fields.data)];
    }
  }
}

function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}

/**
 * Watch a model until the signal says stop: `told(event, data)` for every message, and
 * `state(text)` for how the connection stands. While the tab is hidden nothing is watched.
 */
export async function watch(name, told, state, signal) {
  let wait_ms = 500;
  while (!signal.aborted) {
    await visible(signal);
    if (signal.aborted) return;
    const hidden = new AbortController();
    const either = AbortSignal.any([signal, hidden.signal]);
    const onHide = () => { if (document.hidden) hidden.abort(); };
    document.addEventListener("visibilitychange", onHide);
    try {
      const answer = await fetched(modelPath(name, "/live?features=true&weights=true"), { signal: either });
      state("live");
      let reason = null;
      for await (const [event, data] of messages(answer.body)) {
        wait_ms = 500;
        if (event === "end") reason = data.reason;
        told(event, data);
      }
      if (reason === "deleted") { state("deleted"); return; }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && [401, 403, 404].includes(error.status)) { state(error.message); return; }
    } finally {
      document.removeEventListener("visibilitychange", onHide);
    }
    if (hidden.signal.aborted) { state("paused"); continue; }
    state("connecting");
    await pause(wait_ms, signal);
    wait_ms = Math.min(10_000, wait_ms * 2);
  }
}

/** Resolve once the tab can be seen, or the signal says stop. */
function visible(signal) {
  if (!document.hidden || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const look = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look, { once: true });
  });
}

/** Call a function now and every so often while the tab can be seen, until the signal says stop. */
export async function every(ms, work, signal) {
  while (!signal.aborted) {
    await visible(signal);
    if (signal.aborted) return;
    try {
      await work();
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
    }
    await pause(ms, signal);
  }
}
