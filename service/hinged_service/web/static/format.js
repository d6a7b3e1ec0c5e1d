// Numbers, times and labels as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const compact = (digits) => new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: digits });

export const NONE = "–";

/** A count; a large one in so many digits. */
export function count(value, digits = 1) {
  if (value === null || value === undefined) return NONE;
  return Math.abs(value) >= 1e6 ? compact(digits).format(value) : whole.format(value);
}

/** A count of things. */
export function counted(n, thing) {
  return `${count(n)} ${thing}${n === 1 ? "" : "s"}`;
}

/** A share as percent. */
export function percent(value, digits = 1) {
  return value === null || value === undefined || Number.isNaN(value) ? NONE : `${(100 * value).toFixed(digits)}%`;
}

/** Any number, in at most four digits. */
export function number(value) {
  if (value === null || value === undefined) return NONE;
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-3) return value.toExponential(1);
  return String(Number(value.toPrecision(4)));
}

/** A number with its sign. */
export function signed(value) {
  return value > 0 ? `+${number(value)}` : number(value).replace("-", "−");
}

/** Events per second. */
export function rate(value, digits = 1) {
  if (value === null || value === undefined) return NONE;
  return value < 10 ? value.toFixed(digits) : whole.format(value);
}

/** A span of time. */
export function span(seconds) {
  if (seconds === null || seconds === undefined) return NONE;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 120) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

/** How long ago a time in ms since 1970 was. */
export function ago(ms) {
  if (!ms) return NONE;
  const seconds = Math.max(0, (Date.now() - ms) / 1000);
  return seconds < 2 ? "now" : `${span(seconds)} ago`;
}

/** A time: that of today by the clock, another one with its day. */
export function moment(ms) {
  const day = new Date(ms).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  return new Date(ms).toDateString() === new Date().toDateString() ? clock(ms) : `${day}, ${clock(ms).slice(0, 5)}`;
}

/** The time of day. */
export function clock(ms) {
  return new Date(ms).toLocaleTimeString("en-GB");
}

/** A label or value as its JSON says it, text without the quotes. */
export function label(value) {
  if (value === null || value === undefined) return NONE;
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** A text cut to a length. */
export function cut(text, most) {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
