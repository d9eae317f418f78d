// The plan box: a spec in, the verdict on every target out; kept up to date while it is shown.

import { call } from "./api.js";
import { at, h, say } from "./dom.js";
import { planList } from "./sheet.js";

const REST = 2000; // ms between refreshes

export class PlanBox {
  constructor(store) {
    this.store = store;
    this.spec = "";
    this.names = h("datalist", { id: "specs" });
    this.input = h("input", {
      id: "spec", name: "spec", list: "specs", required: true, autocomplete: "off", spellcheck: "false", placeholder: "alias, or provider/model, …",
      "aria-label": "A spec: an alias, or targets separated by commas",
    });
    this.told = h("p", { class: "told", role: "alert" });
    this.result = h("div", { class: "plan-result" });
    this.spoken = h("p", { class: "unseen", role: "status" }); // only of what was asked by hand
    at("plan").append(
      h("form", { class: "plan-form", onsubmit: (event) => this.asked(event) },
        this.input, h("button", { type: "submit", class: "strong" }, "Plan")),
      this.names, this.told, this.spoken, this.result);
  }

  async asked(event) {
    event.preventDefault();
    await this.ask(this.input.value.trim());
    const plan = this.plan;
    if (plan) say(this.spoken, plan.head ? `${plan.head} would be called first` : "nobody would be called");
  }

  /** Reasons count seconds: while somebody is skipped they are asked for again. */
  tick() {
    if (!document.hidden && this.plan?.targets.some((row) => row.verdict === "skip")) this.changed();
  }

  /** After news of health: the first alias if nothing was asked yet, else the same again. */
  show() {
    const names = this.store.lanes.map((lane) => lane.name);
    if (names.length !== this.names.children.length) {
      this.names.replaceChildren(...names.map((name) => h("option", { value: name })));
    }
    if (!this.spec && !this.input.value && names.length) this.input.value = this.spec = names[0];
    if (!this.spec || this.resting) return;
    this.resting = true;
    this.ask(this.spec);
    setTimeout(() => {
      this.resting = false;
      if (this.stale) this.show();
    }, REST);
    this.stale = false;
  }

  changed() {
    this.stale = true;
    this.show();
  }

  async ask(spec) {
    this.spec = spec;
    this.plan = null;
    try {
      const plan = await call(`plan?model=${encodeURIComponent(spec)}`);
      if (this.spec !== spec) return;
      this.plan = plan;
      say(this.told, "");
      this.result.replaceChildren(planList(plan));
    } catch (error) {
      if (this.spec !== spec) return;
      if (error instanceof TypeError) return; // not reached: the next snapshot asks again
      this.spec = ""; // what cannot be planned is not asked again
      this.result.replaceChildren();
      say(this.told, error.message);
    }
  }
}
