// The timeline: a row a request, a segment an attempt. Only rows in sight exist as elements.

import { at, h, name, say } from "./dom.js";
import { another } from "./store.js";
import { clock, COLOURS, kind, span, why, word } from "./words.js";

const SPARE = 3; // rows drawn beyond either edge
const SAMPLE = 300; // requests the scale is taken from
const FILTERS = {
  all: ["All", () => true],
  over: ["Failed over", another],
  failed: ["Failed", (request) => request.outcome !== "ok"],
};

export class Requests {
  constructor(store, onStory) {
    this.store = store;
    this.onStory = onStory;
    this.filter = "all";
    this.found = []; // those that pass the filter, oldest first
    this.first = 0; // number of found[0]
    this.scale = 1; // seconds a full bar stands for
    this.pool = [];
    this.build();
    this.reset();
  }

  build() {
    this.space = h("div", { class: "space", role: "presentation" });
    this.body = h("div", { class: "rows", role: "rowgroup" }, this.space);
    this.legend = h("span", { class: "hint" });
    const head = (text, more) => h("span", { role: "columnheader" }, text, more);
    this.table = h("div", { class: "requests", role: "table", "aria-label": "Recent requests, newest first" },
      h("div", { role: "rowgroup" },
        h("div", { class: "row row-head", role: "row" },
          head("Time"), head("Model"), head("Attempts ", this.legend), head("Result"), head("Took"), head(h("span", { class: "unseen" }, "Story")))),
      this.body);
    this.empty = h("p", { class: "empty" });
    at("requests").append(this.table, this.empty);
    this.body.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.body);
    at("filter").append(...Object.entries(FILTERS).map(([name, [text]]) =>
      h("button", { type: "button", "aria-pressed": String(name === this.filter), "data-filter": name, onclick: () => this.choose(name) }, text)));
    at("colours").append(...Object.entries(COLOURS).map(([name, text]) =>
      h("li", {}, h("i", { class: "swatch", "data-kind": name, "aria-hidden": "true" }), text)));
    tips(this.body);
  }

  choose(name) {
    this.filter = name;
    for (const button of at("filter").children) {
      button.setAttribute("aria-pressed", String(button.dataset.filter === name));
    }
    this.body.scrollTop = 0;
    this.reset();
  }

  /** Everything anew: another filter, or a new snapshot. */
  reset() {
    this.found = this.store.requests.filter(FILTERS[this.filter][1]);
    this.first = 0;
    for (const row of this.pool) row.number = null;
    this.rescale();
    this.draw();
  }

  past(requests) {
    const older = requests.filter(FILTERS[this.filter][1]);
    this.found.unshift(...older);
    this.first -= older.length;
    this.later();
  }

  added(requests) {
    const fresh = requests.filter(FILTERS[this.filter][1]);
    this.found.push(...fresh);
    const extra = this.found.length - this.store.requests.length; // those forgotten
    if (extra > 0) {
      this.found.splice(0, extra);
      this.first += extra;
    }
    // Who reads further down is not pushed away by what comes in above.
    if (this.body.scrollTop > 4) this.moved = (this.moved ?? 0) + fresh.length;
    this.later();
  }

  later() {
    if (this.planned) return;
    this.planned = true;
    requestAnimationFrame(() => {
      this.planned = false;
      this.draw();
    });
  }

  /** A bar's full length: what most requests take, as a round number. */
  rescale() {
    const times = this.found.slice(-SAMPLE).map((request) => request.seconds).sort((a, b) => a - b);
    const most = times[Math.floor(times.length * 0.95)] ?? 1;
    const unit = 10 ** Math.floor(Math.log10(Math.max(most, 1e-5)));
    const scale = unit * [1, 2, 5, 10].find((step) => unit * step >= most * 0.999);
    say(this.legend, times.length ? `full bar ${span(scale)}` : "");
    if (scale === this.scale) return;
    this.scale = scale;
    for (const row of this.pool) row.number = null;
    this.later();
  }

  draw() {
    const tall = parseFloat(getComputedStyle(this.body).getPropertyValue("--row"));
    const all = this.found.length;
    this.space.style.height = `${all * tall}px`;
    if (this.moved) {
      this.body.scrollTop += this.moved * tall;
      this.moved = 0;
    }
    this.table.setAttribute("aria-rowcount", String(all + 1));
    this.table.hidden = !all;
    this.empty.hidden = all > 0;
    say(this.empty, this.filter === "all" ? "No requests yet. They appear here as they finish." : "None among those remembered.");
    const top = Math.max(0, Math.floor(this.body.scrollTop / tall) - SPARE);
    const end = Math.min(all, Math.ceil((this.body.scrollTop + this.body.clientHeight) / tall) + SPARE);
    const size = Math.ceil(this.body.clientHeight / tall) + 2 * SPARE + 2;
    while (this.pool.length > size) this.pool.pop().element.remove();
    while (this.pool.length < size) this.pool.push(new Row(this));
    const used = new Set();
    for (let place = top; place < end; place++) {
      const index = all - 1 - place;
      const number = this.first + index;
      const row = this.pool[((number % size) + size) % size]; // an element stays with its request
      used.add(row);
      row.show(this.found[index], number, place, tall);
    }
    for (const row of this.pool) if (!used.has(row)) row.hide();
  }
}

class Row {
  constructor(list) {
    this.list = list;
    this.number = null;
    const cell = (name, ...children) => h("span", { class: name, role: "cell" }, ...children);
    this.time = cell("when");
    this.model = cell("model");
    this.bar = cell("bar");
    this.result = h("b", { class: "word" });
    this.took = cell("took");
    this.button = h("button", { type: "button", class: "why" });
    this.element = h("div", { class: "row", role: "row", hidden: true, onclick: () => list.onStory(this.request) },
      this.time, this.model, this.bar, cell("result", this.result), this.took, cell("more", this.button));
    list.space.append(this.element);
  }

  hide() {
    if (this.element.hidden) return;
    this.element.hidden = true;
    this.bar.replaceChildren();
    this.number = null;
  }

  show(request, number, place, tall) {
    this.element.style.transform = `translateY(${place * tall}px)`;
    this.element.setAttribute("aria-rowindex", String(place + 2));
    if (this.number === number) return;
    this.number = number;
    this.request = request;
    this.element.hidden = false;
    this.element.dataset.outcome = request.outcome;
    say(this.time, clock(request.at));
    name(this.model, request.model || "–");
    const served = request.outcome === "ok" ? request.target : request.attempts.at(-1) && request.outcome !== "refused" ? word(request.attempts.at(-1)) : request.outcome;
    name(this.result, request.outcome === "ok" ? served : `${request.status} ${request.outcome}`);
    this.result.title = served;
    say(this.took, span(request.seconds));
    say(this.button, request.outcome === "ok" ? "story" : "why?");
    this.button.setAttribute("aria-label", `${this.button.textContent} ${request.model} at ${clock(request.at)}`);
    this.bar.replaceChildren(...request.attempts.slice(0, 40).map((attempt, n) => this.segment(attempt, n)));
    if (!request.attempts.length) this.bar.append(h("span", { class: "hint" }, "no target asked"));
  }

  segment(attempt, n) {
    const element = h("i", { class: "seg", "data-kind": kind(attempt), "data-n": n, role: "img", "aria-label": `${attempt.target} ${word(attempt)}` });
    element.attempt = attempt;
    element.style.flexBasis = `${Math.min(100, (100 * attempt.seconds) / this.list.scale).toFixed(2)}%`;
    return element;
  }
}

/** Hover or tap a segment: what happened there. The story behind the button says it to everybody. */
function tips(body) {
  const tip = at("tip");
  const hide = () => (tip.hidden = true);
  const show = (event) => {
    const segment = event.target.closest?.(".seg");
    if (!segment) return hide();
    const attempt = segment.attempt;
    tip.replaceChildren(
      h("b", {}, attempt.target),
      h("span", { class: "tip-word" }, [word(attempt), attempt.outcome === "skipped" ? "" : span(attempt.seconds)].filter(Boolean).join(" · ")),
      h("span", {}, why(attempt)));
    tip.dataset.kind = kind(attempt);
    tip.hidden = false;
    const box = segment.getBoundingClientRect();
    const wide = tip.offsetWidth;
    const x = Math.max(8, Math.min(innerWidth - wide - 8, box.left + box.width / 2 - wide / 2));
    const above = box.top - tip.offsetHeight - 8;
    tip.style.transform = `translate(${x}px, ${above > 8 ? above : box.bottom + 8}px)`;
  };
  body.addEventListener("pointerover", show);
  body.addEventListener("pointerleave", hide);
  body.addEventListener("scroll", hide, { passive: true });
  body.addEventListener("click", (event) => {
    if (!event.target.closest(".seg")) return;
    show(event); // a tap on a segment is about it, not about the row
    event.stopPropagation();
  }, true);
  addEventListener("keydown", (event) => event.key === "Escape" && hide());
}
