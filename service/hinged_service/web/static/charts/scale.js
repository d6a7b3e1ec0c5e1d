// From values to pixels, and round numbers for the axes.

/** A linear scale. */
export function linear([low, high], [from, to]) {
  const size = high - low || 1;
  const at = (value) => from + ((value - low) / size) * (to - from);
  at.invert = (pixel) => low + ((pixel - from) / (to - from || 1)) * size;
  return at;
}

/** About so many round values between two. */
export function ticks(low, high, wanted) {
  const rough = (high - low) / Math.max(1, wanted);
  if (!(rough > 0) || !Number.isFinite(rough)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((one) => one >= rough);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i += 1) found.push(Number((i * step).toPrecision(12)));
  return found;
}

/** Texts of round values with as few digits as say them; `format` takes a value and digits. */
export function texts(values, format) {
  const said = (value, digits) => parseFloat(format(value, digits).replaceAll(",", ""));
  let digits = 0;
  while (digits < 6 && values.some((value) => said(value, digits) !== said(value, digits + 2))) digits += 1;
  return values.map((value) => format(value, digits));
}

const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400];

/** Round times between two, in ms. */
export function timeTicks(low, high, wanted) {
  const rough_s = (high - low) / 1000 / Math.max(1, wanted);
  const step = 1000 * (STEPS_S.find((one) => one >= rough_s) ?? 86400 * Math.ceil(rough_s / 86400));
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
  return found;
}

/** The least and greatest of some values that are numbers, widened if they are equal to rounding. */
export function extent(values, padding = 0) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (value === null || value === undefined || !Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return [0, 1];
  if (high - low <= 1e-9 * Math.max(Math.abs(low), Math.abs(high))) return [low - 0.5, high + 0.5];
  const more = (high - low) * padding;
  return [low - more, high + more];
}
