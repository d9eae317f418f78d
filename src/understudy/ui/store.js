// What the page knows: lanes, marks, ledger, remembered requests, and two minutes of counts.

export const SECONDS = 120;
const LEAST = 20; // seconds a chart is wide, however young the gateway
const REMEMBERED = 10_000;
const ENTRIES = 200;

const count = () => ({ ok: 0, failed: 0, skipped: 0, over: 0, first: null });

export class Store {
  constructor() {
    this.offset = 0; // seconds the gateway's clock is ahead of ours
    this.clear();
  }

  clear() {
    this.lanes = [];
    this.keys = {};
    this.ledger = []; // newest first
    this.requests = []; // oldest first
    this.first = 0; // number of requests[0]; numbers never change while a request is kept
    this.buckets = new Map(); // epoch second -> {all, targets}
    this.since = 0; // when the gateway began
    this.inFlight = 0;
    this.status = "";
    this.policy = "";
  }

  now() {
    return Date.now() / 1000 + this.offset;
  }

  hello(told) {
    this.clear();
    this.policy = told.policy;
    this.since = told.since;
    this.health(told);
  }

  health(told) {
    this.tick(told);
    this.lanes = told.lanes;
    this.keys = told.keys;
    this.ledger.unshift(...[...told.ledger].reverse());
    this.ledger.length = Math.min(this.ledger.length, ENTRIES);
  }

  tick(told) {
    this.offset = told.at - Date.now() / 1000;
    this.inFlight = told.in_flight;
    this.status = told.status;
  }

  /** Older ones: they go before the rest, and into the charts. */
  past(requests) {
    this.requests.unshift(...requests);
    this.first -= requests.length;
    for (const request of requests) this.count(request);
  }

  /** New ones; the rates count them. */
  finished(requests) {
    this.requests.push(...requests);
    const extra = this.requests.length - REMEMBERED;
    if (extra > 500) {
      this.requests.splice(0, extra);
      this.first += extra;
    }
  }

  rates(told) {
    this.tick(told);
    const second = Math.floor(told.at);
    this.buckets.set(second, { all: told.all, targets: told.targets });
    for (const known of this.buckets.keys()) if (known < second - SECONDS) this.buckets.delete(known);
  }

  /** How many seconds the charts and rates are about: two minutes, fewer after a start. */
  span() {
    return Math.max(LEAST, Math.min(SECONDS, Math.ceil(this.now() - this.since)));
  }

  /** Those seconds, oldest first: `pick(bucket)` of every one, null where it has none. */
  series(pick) {
    const end = Math.floor(this.now());
    const length = this.span();
    return Array.from({ length }, (_, n) => {
      const bucket = this.buckets.get(end - length + 1 + n);
      return bucket ? (pick(bucket) ?? null) : null;
    });
  }

  /** Counts of one target, or of all requests, over those seconds. */
  total(pick) {
    const sum = { ...count(), firsts: [] };
    for (const found of this.series(pick)) {
      if (!found) continue;
      for (const name of ["ok", "failed", "skipped", "over"]) sum[name] += found[name];
      if (found.first !== null) sum.firsts.push(found.first);
    }
    sum.firsts.sort((one, other) => one - other);
    sum.first = sum.firsts[Math.floor(sum.firsts.length / 2)] ?? null;
    return sum;
  }

  /** Every target: those that were asked lately or are in trouble before the idle. */
  targets() {
    const rows = this.lanes.flatMap((lane) => lane.targets);
    const busy = new Set(rows.filter((row) => row.state !== "healthy").map((row) => row.target));
    for (const bucket of this.buckets.values()) for (const name in bucket.targets) busy.add(name);
    const named = rows.map((row) => row.target);
    return [...new Set([...named.filter((name) => busy.has(name)), ...busy, ...named])];
  }

  standing(target) {
    for (const lane of this.lanes) {
      const row = lane.targets.find((each) => each.target === target);
      if (row) return row;
    }
    return null;
  }

  count(request) {
    const second = Math.floor(request.at + request.seconds);
    if (second < this.now() - SECONDS) return;
    if (!this.buckets.has(second)) this.buckets.set(second, { all: count(), targets: {} });
    const { all, targets } = this.buckets.get(second);
    if (request.outcome === "ok") all.ok += 1;
    else if (request.outcome === "failed" || request.outcome === "broken") all.failed += 1;
    else all.skipped += 1;
    if (another(request)) all.over += 1;
    for (const attempt of request.attempts) {
      const own = (targets[attempt.target] ??= count());
      if (attempt.outcome in own) own[attempt.outcome] += 1;
      if (attempt.then === "advance") own.over += 1;
      if (attempt.first_content !== null) own.first = all.first = attempt.first_content;
    }
  }
}

/** Was it answered by another than the first of its chain? */
export function another(request) {
  return Boolean(request.target && request.attempts[0]?.target !== request.target);
}
