// Who is marked and why, what was ordered, and the orders: bench and unbench.

import { call } from "./api.js";
import { at, h, Keyed, put, say } from "./dom.js";
import { clock, inSeconds, left, plural, sentence } from "./words.js";

const SHOWN = 40; // lines of the history
const STATES = ["benched", "probing", "unproven", "counting"]; // who sits out now comes first
const TIMES = { "1 minute": 60, "10 minutes": 600, "1 hour": 3600, "1 day": 86400 };

/** Orders to the gateway; `trouble` is told what went wrong, and may ask for the key and retry. */
export class Orders {
  constructor(trouble) {
    this.trouble = trouble;
  }

  bench(key, seconds, reason) {
    return this.trouble(() => call("bench", { key, seconds, why: reason }));
  }

  unbench(key) {
    return this.trouble(() => call("unbench", { key }));
  }

  /** A form that benches; with `fixed` about that key, else with a field for it. */
  form(fixed, done = () => {}) {
    const key = h("input", { name: "key", list: "keys", required: true, autocomplete: "off", spellcheck: "false", placeholder: "provider/model", "aria-label": "Target to bench" });
    const time = h("select", { name: "seconds", "aria-label": "For how long" }, ...Object.entries(TIMES).map(([text, seconds]) => h("option", { value: seconds }, text)));
    const reason = h("input", { name: "why", maxlength: 200, placeholder: "why (everybody will read it)", autocomplete: "off", "aria-label": "Why" });
    const told = h("p", { class: "told", role: "alert" });
    time.value = "600";
    const send = async (event) => {
      event.preventDefault();
      say(told, "");
      try {
        await this.bench(fixed ?? key.value.trim(), Number(time.value), reason.value.trim());
        key.value = reason.value = "";
        done();
      } catch (error) {
        say(told, error.message);
      }
    };
    return h("form", { class: "bench-form", onsubmit: send },
      fixed ? null : key, time, reason, h("button", { type: "submit", class: "strong" }, "Bench"), told);
  }
}

export class Ledger {
  constructor(store, orders) {
    this.store = store;
    this.marks = h("ul", { class: "marks" });
    this.none = h("p", { class: "empty" }, "Nothing is held against anybody.");
    this.names = h("datalist", { id: "keys" });
    this.told = h("p", { class: "told", role: "alert" });
    this.history = h("ol", { class: "history" });
    this.past = h("details", { class: "past" }, h("summary", {}, "History"), this.history);
    at("ledger").append(this.none, this.marks, this.told,
      h("div", { class: "pad" }, h("h3", {}, "Take a target out"), orders.form(null)), this.names, this.past);
    this.keyed = new Keyed(this.marks, ([key]) => new Mark(key, store, orders, this.told));
  }

  show() {
    const marks = Object.entries(this.store.keys)
      .sort(([, one], [, other]) => STATES.indexOf(word(one)) - STATES.indexOf(word(other)));
    this.keyed.show(marks, ([key]) => key);
    this.none.hidden = marks.length > 0;
    say(at("ledger-count"), marks.length ? `${plural(marks.length, "key")} marked` : "");
    this.past.hidden = !this.store.ledger.length;
    this.history.replaceChildren(...this.store.ledger.slice(0, SHOWN).map(entry));
    const names = this.store.targets();
    if (names.length !== this.names.children.length) {
      this.names.replaceChildren(...names.map((name) => h("option", { value: name })));
    }
  }

  tick() {
    for (const mark of this.keyed.known.values()) mark.tick();
  }
}

class Mark {
  constructor(key, store, orders, told) {
    this.store = store;
    this.dot = h("i", { class: "dot", "aria-hidden": "true" });
    this.time = h("span", { class: "time" });
    this.reason = h("p", {});
    const unbench = async () => {
      say(told, "");
      await orders.unbench(key).catch((error) => say(told, error.message));
    };
    this.element = h("li", { class: "mark-row" },
      h("div", {}, h("div", { class: "mark-key" }, this.dot, h("code", {}, key), this.time), this.reason),
      h("button", { type: "button", "aria-label": `Unbench ${key}`, onclick: unbench }, "Unbench"));
  }

  update([, state]) {
    this.state = state;
    put(this.dot, "data-state", word(state));
    this.tick();
  }

  tick() {
    const bench = this.state.bench;
    const remaining = bench && bench.until !== null ? bench.until - this.store.now() : Infinity;
    say(this.reason, sentence(this.state.reason, remaining));
    if (!bench || !this.state.benched) return say(this.time, "");
    say(this.time, remaining === Infinity ? "until cleared" : remaining > 0 ? left(remaining) : "");
  }
}

function word(state) {
  return state.benched ? "benched" : state.probing ? "probing" : state.bench ? "unproven" : "counting";
}

function entry(line) {
  const length = line.seconds === undefined ? "" : line.seconds === null ? "until cleared" : inSeconds(line.seconds);
  const facts = [length, line.fault, line.source && `by ${line.source}`, line.why].filter(Boolean).join(" · ");
  return h("li", {}, h("time", {}, clock(line.at)),
    h("div", {}, h("b", { "data-kind": line.kind }, line.kind), " ", h("code", {}, line.key), facts ? h("p", { class: "hint" }, facts) : null));
}
