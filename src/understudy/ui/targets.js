// Every target in numbers: attempts, how many went on to another, time to the first content.

import { at, h, Keyed, name, put, say } from "./dom.js";
import { Bars, Line } from "./charts.js";
import { percent, rate, span, STATES } from "./words.js";
import { SECONDS } from "./store.js";

const FEW = 12; // rows shown unless all are wanted
const MOST = 200;

export class Targets {
  constructor(store) {
    this.store = store;
    const head = (text) => h("th", { scope: "col", role: "columnheader" }, text);
    this.rows = h("tbody", { role: "rowgroup" });
    this.table = h("table", { class: "targets", role: "table", "aria-labelledby": "targets-title" },
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, head("Target"), head("Attempts"), head("Failover share"), head("First content"))),
      this.rows);
    this.empty = h("p", { class: "empty" }, "No target has been asked yet.");
    this.all = false;
    this.more = h("button", { type: "button", class: "quiet more-rows", hidden: true, onclick: () => this.toggle() });
    at("targets").append(this.table, this.empty, this.more);
    this.keyed = new Keyed(this.rows, (target) => new Target(target, store));
  }

  toggle() {
    this.all = !this.all;
    this.show();
  }

  show() {
    const targets = this.store.targets().slice(0, MOST);
    this.table.hidden = !targets.length;
    this.empty.hidden = targets.length > 0;
    this.more.hidden = targets.length <= FEW;
    say(this.more, this.all ? "Show fewer" : `Show all ${targets.length} targets`);
    this.keyed.show(this.all ? targets : targets.slice(0, FEW), (target) => target);
    const seconds = this.store.span();
    const window = seconds < SECONDS ? `the last ${seconds} seconds` : "the last two minutes";
    say(at("window"), `${window} · failover share: its turns that went on to the next target`);
  }
}

class Target {
  constructor(target, store) {
    this.store = store;
    this.dot = h("i", { class: "dot", "aria-hidden": "true" });
    this.bars = new Bars("attempts");
    this.rate = h("span", { class: "number" });
    this.share = h("i", { class: "share" });
    this.part = h("span", { class: "number" });
    this.line = new Line("first content");
    this.first = h("span", { class: "number" });
    const cell = (label, ...children) => h("td", { role: "cell", "data-label": label }, h("div", { class: "cell" }, ...children));
    const named = h("span", { class: "name" });
    name(named, target);
    this.element = h("tr", { role: "row" },
      h("th", { scope: "row", role: "rowheader" }, this.dot, named),
      cell("Attempts", this.bars.element, this.rate),
      cell("Failover share", h("span", { class: "meter", "aria-hidden": "true" }, this.share), this.part),
      cell("First content", this.line.element, this.first));
  }

  update(target) {
    const pick = (bucket) => bucket.targets[target];
    const sum = this.store.total(pick);
    const asked = sum.ok + sum.failed;
    const state = this.store.standing(target)?.state ?? "healthy";
    put(this.dot, "data-state", state);
    this.dot.title = STATES[state];
    this.bars.draw(this.store.series(pick));
    say(this.rate, `${rate(asked / this.store.span())}/s`);
    const over = sum.over + sum.skipped;
    say(this.part, percent(over, asked + sum.skipped));
    this.share.style.setProperty("--share", (over / Math.max(1, asked + sum.skipped)).toFixed(3));
    this.line.draw(this.store.series((bucket) => pick(bucket)?.first));
    say(this.first, span(sum.first));
  }
}

/** The four numbers on top. */
export class Tiles {
  constructor(store) {
    this.store = store;
    this.tiles = [
      new Tile("Requests", "a second", (b) => b.all.ok + b.all.failed + b.all.skipped, (sum) => rate((sum.ok + sum.failed + sum.skipped) / store.span())),
      new Tile("Failover share", "answered by another than the first", (b) => b.all.over, (sum) => percent(sum.over, sum.ok)),
      new Tile("Failed", "no target could answer", (b) => b.all.failed, (sum) => percent(sum.failed, sum.ok + sum.failed)),
      new Tile("First content", "median of streams", (b) => b.all.first, (sum) => span(sum.first)),
    ];
    at("tiles").append(...this.tiles.map((tile) => tile.element));
  }

  show() {
    const sum = this.store.total((bucket) => bucket.all);
    for (const tile of this.tiles) tile.show(sum, this.store.series(tile.pick));
  }
}

class Tile {
  constructor(title, hint, pick, value) {
    this.pick = pick;
    this.value = value;
    this.number = h("strong", {});
    this.line = new Line(title);
    this.element = h("div", { class: "tile", "data-tile": title },
      h("span", { class: "tile-title" }, title), this.number, h("span", { class: "hint" }, hint), this.line.element);
  }

  show(sum, series) {
    say(this.number, this.value(sum));
    this.line.draw(series);
  }
}
