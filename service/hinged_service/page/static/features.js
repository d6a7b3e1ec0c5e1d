// What can be told of features from events that have them.

/** Names of numeric features with how often and how widely they occur, the most frequent first. */
export function numericFeatures(events) {
  const found = new Map();
  for (const { x } of events) {
    for (const [name, value] of Object.entries(x ?? {})) {
      if (typeof value !== "number") continue;
      const one = found.get(name) ?? { name, n: 0, low: Infinity, high: -Infinity, sum: 0 };
      one.n += 1;
      one.low = Math.min(one.low, value);
      one.high = Math.max(one.high, value);
      one.sum += value;
      found.set(name, one);
    }
  }
  return [...found.values()].sort((a, b) => b.n - a.n);
}

/** The two features with the most influence: their weight times how far their values spread. */
export function strongest(features, weights) {
  const strength = (one) => Math.abs(weights?.[one.name] ?? 0) * (one.high - one.low || 1e-9) * one.n;
  return [...features].sort((a, b) => strength(b) - strength(a)).slice(0, 2).map((one) => one.name);
}

/** An event between all others: the mean of numbers, else the most frequent value. */
export function typical(events) {
  const values = new Map();
  for (const { x } of events) {
    for (const [name, value] of Object.entries(x ?? {})) {
      if (!values.has(name)) values.set(name, []);
      values.get(name).push(value);
    }
  }
  const found = {};
  for (const [name, all] of values) {
    if (all.every((one) => typeof one === "number")) found[name] = all.reduce((a, b) => a + b, 0) / events.length;
    else if (all.length * 2 >= events.length) found[name] = mode(all);
  }
  return found;
}

function mode(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0][0];
}

const AFFINE = new Set(["StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "Select", "Discard", "StatImputer"]);
const CURVED = new Set(["hedge", "custom"]);

/** Whether a model's score is affine in each feature, so that the corners of a plane tell all. */
export function isAffine(spec) {
  const ours = /^[a-z_]+$/.test(spec.learner.type) && !CURVED.has(spec.learner.type);
  return ours && !isMulticlass(spec) && (spec.pipeline ?? []).every((step) => AFFINE.has(step.type));
}

/** Whether a model tells more than two labels apart. */
export function isMulticlass({ learner }) {
  return "max_classes" in learner || Number.isInteger(learner.classes);
}
