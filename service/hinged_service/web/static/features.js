// What can be told of features from events that have them. Names may be anything, also those of
// JavaScript's own properties, so nothing is looked up by them in a plain object.

const MOST_VALUES = 20_000;

/** Names and values of events, the newest first, up to a limit. */
function* named(events) {
  let seen = 0;
  for (let i = events.length - 1; i >= 0 && seen < MOST_VALUES; i -= 1) {
    for (const pair of Object.entries(events[i].x ?? {})) {
      seen += 1;
      yield pair;
    }
  }
}

/** Names of numeric features with how often and how widely they occur, the most frequent first. */
export function numericFeatures(events) {
  const found = new Map();
  for (const [name, value] of named(events)) {
    if (typeof value !== "number") continue;
    const one = found.get(name) ?? { name, n: 0, low: Infinity, high: -Infinity };
    one.n += 1;
    one.low = Math.min(one.low, value);
    one.high = Math.max(one.high, value);
    found.set(name, one);
  }
  return [...found.values()].sort((a, b) => b.n - a.n);
}

/** The two features with the most influence: their weight times how far their values spread. */
export function strongest(features, weights) {
  const known = new Map(Object.entries(weights ?? {}));
  const strength = (one) => Math.abs(known.get(one.name) ?? 0) * (one.high - one.low || 1e-9) * one.n;
  return [...features].sort((a, b) => strength(b) - strength(a)).slice(0, 2).map((one) => one.name);
}

/** An event between all others: the mean of numbers, else the most frequent value. */
export function typical(events) {
  const found = new Map();
  for (const [name, value] of named(events)) {
    if (!found.has(name)) found.set(name, []);
    found.get(name).push(value);
  }
  const numbers = (all) => all.every((one) => typeof one === "number");
  const middle = (all) => (numbers(all) ? all.reduce((a, b) => a + b, 0) / events.length : mode(all));
  const frequent = [...found].filter(([, all]) => numbers(all) || all.length * 2 >= events.length);
  frequent.sort((a, b) => b[1].length - a[1].length);
  return Object.fromEntries(frequent.map(([name, all]) => [name, middle(all)]));
}

function mode(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0][0];
}

const AFFINE = new Set(["StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "Select", "Discard", "StatImputer"]);
const CURVED = new Set(["auto", "hedge", "curved", "quadratic", "custom"]);

/** Whether a model's score is affine in each feature, so that the corners of a plane suffice. */
export function isAffine(spec) {
  const ours = /^[a-z_]+$/.test(spec.learner.type) && !CURVED.has(spec.learner.type);
  return ours && !isMulticlass(spec) && !spec.scale && (spec.pipeline ?? []).every((step) => AFFINE.has(step.type));
}

/** Whether a model has more than two labels. */
export function isMulticlass({ learner, labels }) {
  if (learner.type === "auto" && Array.isArray(labels) && labels.length === 2) return false;
  return "max_classes" in learner || Number.isInteger(learner.classes);
}
