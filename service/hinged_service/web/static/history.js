// The life of a model: what the service keeps of it, then what this tab sees. It outlives the view,
// so that charts go on where they were.

const SAMPLES = 900;
const OUTCOMES = 300;
const MARGINS = 1000;
const kept = new Map();

/** The history of a model, by its uid. */
export function historyOf(uid) {
  if (!kept.has(uid)) {
    if (kept.size >= 20) kept.delete(kept.keys().next().value);
    kept.set(uid, new History());
  }
  return kept.get(uid);
}

/** The text of a command or drift. */
export function turnText(kind, text) {
  return kind === "configure" ? `configure ${text}` : kind;
}

/** Samples, outcomes, margins, confusions and marks, the oldest first. */
export class History {
  constructor() {
    this.past = [];
    this.seen = [];
    this.outcomes = [];
    this.margins = [];
    this.marks = [];
    this.confusion = new Map();
    this.metrics = null;
    this.whole = null;
  }

  /** All samples `{t, events, mistakes, …}`, of before this tab and since. */
  get samples() {
    this.whole ??= [...this.past, ...this.seen].sort((a, b) => a.events - b.events || a.t - b.t);
    return this.whole;
  }

  /** Take in the history that the service keeps: what was seen of an earlier state goes. */
  addLife({ points, turns }) {
    const last = points.at(-1)?.events ?? 0;
    this.past = points.map((one) => ({
      t: one.at_ms, events: one.events, judged: one.judged, mistakes: one.mistakes, updates: one.updates,
      rate: one.events_per_s, accuracy: one.accuracy, rolling: one.rolling_accuracy, loss: one.log_loss, delay: one.mean_delay_s,
    }));
    this.seen = this.seen.filter((one) => one.events <= last);
    this.whole = null;
    this.marks = [];
    for (const one of turns) this.addMark(one.kind, turnText(one.kind, one.text), one.at_ms, one.events);
  }

  /** Take in the present metrics of the model. */
  addMetrics(data, now = Date.now()) {
    if (data.events < (this.metrics?.events ?? 0)) this.seen = []; // an earlier state was restored
    this.metrics = data;
    this.seen.push({
      t: now,
      events: data.events,
      judged: data.judged,
      mistakes: data.mistakes,
      updates: data.updates,
      rate: data.events_per_s,
      accuracy: data.accuracy,
      rolling: data.rolling_accuracy,
      loss: data.metrics.log_loss,
    });
    if (this.seen.length > SAMPLES) {
      const half = SAMPLES / 2; // the older half becomes coarser, so the chart reaches further back
      this.seen = [...this.seen.slice(0, half).filter((_, i) => i % 2 === 0), ...this.seen.slice(half)];
    }
    this.whole = null;
  }

  /** Take in the outcome of an event. */
  addOutcome(data) {
    this.outcomes.push(data);
    if (this.outcomes.length > OUTCOMES) this.outcomes.shift();
    if (Number.isFinite(data.margin)) {
      this.margins.push(data.margin);
      if (this.margins.length > MARGINS) this.margins.shift();
    }
    if (data.w === 0 || data.y_pred === null) return; // not judged
    const key = JSON.stringify([data.y, data.y_pred]);
    this.confusion.set(key, (this.confusion.get(key) ?? 0) + 1);
  }

  /** Take in events of the past, the newest first, without outcomes. */
  addPast(events) {
    const known = new Set(this.outcomes.map((one) => `${one.position}/${one.number}`));
    const more = events.filter((one) => !known.has(`${one.position}/${one.number}`)).reverse();
    const all = [...more.map((one) => ({ ...one, past: true })), ...this.outcomes];
    this.outcomes = all.sort((a, b) => a.at_ms - b.at_ms).slice(-OUTCOMES);
  }

  /** Take in a drift or command, and after how many events it came. */
  addMark(kind, text, at_ms, events = this.metrics?.events ?? 0) {
    if (this.marks.some((one) => one.t === at_ms && one.text === text)) return;
    this.marks.push({ t: at_ms, events, kind: kind === "drift" ? "drift" : "command", text });
    this.marks.sort((a, b) => a.t - b.t);
    if (this.marks.length > 200) this.marks.shift();
  }
}
