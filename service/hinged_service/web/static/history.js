// What this tab has seen of a model. It outlives the view, so that charts go on where they were.

const SAMPLES = 900;
const OUTCOMES = 300;
const MARGINS = 1000;
const ROLLING = 200;
const kept = new Map();

/** The history of a model, by its uid. */
export function historyOf(uid) {
  if (!kept.has(uid)) {
    if (kept.size >= 20) kept.delete(kept.keys().next().value);
    kept.set(uid, new History());
  }
  return kept.get(uid);
}

/** Samples, outcomes, margins, confusions and marks, the oldest first. */
export class History {
  constructor() {
    this.samples = [];
    this.outcomes = [];
    this.margins = [];
    this.marks = [];
    this.confusion = new Map();
    this.metrics = null;
  }

  /** Take in how the model stands. */
  addMetrics(data, now = Date.now()) {
    this.metrics = data;
    this.samples.push({
      t: now,
      events: data.events,
      judged: data.judged,
      mistakes: data.mistakes,
      updates: data.updates,
      rate: data.events_per_s ?? null,
      accuracy: data.accuracy ?? null,
      rolling: null,
    });
    this.samples.at(-1).rolling = this.#rolling();
    if (this.samples.length > SAMPLES) {
      const half = SAMPLES / 2; // the older half becomes coarser, so the chart reaches further back
      this.samples = [...this.samples.slice(0, half).filter((_, i) => i % 2 === 0), ...this.samples.slice(half)];
    }
  }

  /** The accuracy over the last events, at least so many if they were seen. */
  #rolling() {
    const last = this.samples.at(-1);
    let from = null;
    for (let i = this.samples.length - 2; i >= 0; i -= 1) {
      if (this.samples[i].events > this.samples[i + 1].events) break; // an earlier state was restored
      from = this.samples[i];
      if (last.judged - from.judged >= ROLLING) break;
    }
    const judged = from === null ? 0 : last.judged - from.judged;
    return judged >= 10 ? 1 - (last.mistakes - from.mistakes) / judged : (this.samples.at(-2)?.rolling ?? null);
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

  /** Take in events of the past, the newest first, of which no outcome is known. */
  addPast(events) {
    const known = new Set(this.outcomes.map((one) => `${one.position}/${one.number}`));
    const more = events.filter((one) => !known.has(`${one.position}/${one.number}`)).reverse();
    const all = [...more.map((one) => ({ ...one, past: true })), ...this.outcomes];
    this.outcomes = all.sort((a, b) => a.at_ms - b.at_ms).slice(-OUTCOMES);
  }

  /** Take in a drift or command. */
  addMark(kind, text, at_ms) {
    if (this.marks.some((one) => one.t === at_ms && one.text === text)) return;
    this.marks.push({ t: at_ms, kind, text });
    this.marks.sort((a, b) => a.t - b.t);
    if (this.marks.length > 200) this.marks.shift();
  }
}
