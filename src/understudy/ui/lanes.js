// Chains as lanes of targets, in the order they are asked.

import { at, h, Keyed, name, put, say } from "./dom.js";
import { left, plural, STATES } from "./words.js";

const MOST = 8; // lanes drawn unless all are wanted; those in trouble come first

export class Lanes {
  constructor(store, onWhy) {
    this.store = store;
    this.onWhy = onWhy;
    this.all = false;
    this.list = h("div", { class: "lane-list" });
    this.more = h("button", { type: "button", class: "quiet", hidden: true, onclick: () => this.toggle() });
    this.empty = h("p", { class: "empty" }, "No chain is named yet. Aliases of the configuration appear here, and every spec that clients send.");
    at("lanes").append(this.empty, this.list, this.more);
    this.keyed = new Keyed(this.list, (lane) => new Lane(lane, store, onWhy));
    at("legend").append(...Object.entries(STATES).map(([state, text]) =>
      h("li", {}, h("i", { class: "dot", "data-state": state, "aria-hidden": "true" }), text)));
  }

  toggle() {
    this.all = !this.all;
    this.show();
  }

  show() {
    const lanes = this.store.lanes;
    const sorted = lanes.length > MOST ? [...lanes].sort((one, other) => trouble(other) - trouble(one)) : lanes;
    this.keyed.show(this.all ? sorted : sorted.slice(0, MOST), (lane) => lane.name);
    this.empty.hidden = lanes.length > 0;
    this.more.hidden = lanes.length <= MOST;
    say(this.more, this.all ? "Show fewer" : `Show all ${lanes.length} chains`);
  }

  /** Countdowns move without news. */
  tick() {
    for (const lane of this.keyed.known.values()) for (const card of lane.keyed.known.values()) card.tick();
  }
}

/** How much a chain needs to be looked at: nobody left, its head out, anybody else unwell. */
function trouble(lane) {
  if (!lane.head) return 3;
  if (!lane.targets[0].tried) return 2;
  return Number(lane.targets.some((row) => row.state !== "healthy"));
}

class Lane {
  constructor(lane, store, onWhy) {
    this.store = store;
    this.fate = h("span", { class: "fate" });
    this.policy = h("span", { class: "hint" });
    this.row = h("ol", { class: "lane-row" });
    this.element = h("article", { class: "lane", "aria-label": `Chain ${lane.name}` },
      h("header", {},
        h("h3", { class: "lane-name", title: lane.name }, lane.alias ? lane.name : h("code", {}, lane.name)),
        this.fate, this.policy),
      this.row);
    this.keyed = new Keyed(this.row, (row) => new Card(row, store, () => onWhy(this.name, row.target)));
    this.name = lane.name;
  }

  update(lane) {
    say(this.policy, lane.policy === this.store.policy ? "" : `policy ${lane.policy}`);
    say(this.fate, lane.head ? `next: ${lane.head}` : "nobody can answer now");
    put(this.fate, "data-bad", String(!lane.head));
    this.keyed.show(lane.targets.map((row) => ({ ...row, head: row.target === lane.head })), (row) => row.target);
  }
}

class Card {
  constructor(row, store, onWhy) {
    this.store = store;
    const cut = row.target.indexOf("/");
    this.dot = h("i", { class: "dot", "aria-hidden": "true" });
    this.state = h("span", { class: "state" });
    this.time = h("span", { class: "time" });
    this.note = h("span", { class: "note" });
    this.gauge = h("i", { class: "gauge", "aria-hidden": "true" });
    this.next = h("span", { class: "next" }, "next");
    const model = h("span", { class: "model" });
    name(model, row.target.slice(cut + 1));
    model.title = row.target;
    this.element = h("li", { class: "card" },
      h("div", { class: "card-name" },
        h("span", { class: "provider" }, row.target.slice(0, cut)), this.next, model),
      h("div", { class: "card-state" }, this.dot, this.state, this.time),
      this.note,
      h("button", { type: "button", class: "why", "aria-label": `why? ${row.target}`, onclick: onWhy }, "why?"),
      this.gauge);
  }

  update(row) {
    this.row = row;
    put(this.element, "data-state", row.state);
    put(this.element, "data-tried", String(row.tried));
    put(this.dot, "data-state", row.state);
    say(this.state, STATES[row.state]);
    this.next.hidden = !row.head;
    say(this.note, note(row));
    this.tick();
  }

  tick() {
    const bench = this.row.bench;
    const remaining = bench?.until ? bench.until - this.store.now() : 0;
    say(this.time, bench && bench.until === null ? "until cleared" : remaining > 0 ? left(remaining) : "");
    const share = bench && bench.until === null ? 1 : bench ? Math.max(0, Math.min(1, remaining / bench.seconds)) : 0;
    this.gauge.style.setProperty("--share", share.toFixed(3));
  }
}

/** What is behind the state, in a few words; the sentence is behind "why?". */
function note(row) {
  if (row.state === "counting") return `${plural(row.failures, "failure")} in a row`;
  if (row.state === "degraded" && row.credentials > 1) return `${row.credentials_out} of ${row.credentials} keys out`;
  if (!row.bench || row.state === "healthy" || row.state === row.bench.fault) return "";
  const blame = (row.bench.fault ?? row.bench.why) || "no reason given";
  return { operator: `operator: ${row.bench.why || "no reason given"}`, remote: `${blame}, told by another process` }[row.bench.source] ?? blame;
}
