// The plan box: a spec in, the verdict on every target out; kept up to date while it is shown.

import { call } from "./api.js";
import { at, h, say } from "./dom.js";
import { planList } from "./sheet.js";

const REST = 1500; // ms between refreshes

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
    this.result = h("div", { class: "plan-result", "aria-live": "polite" });
    at("plan").append(
      h("form", { class: "plan-form", onsubmit: (event) => (event.preventDefault(), this.ask(this.input.value.trim())) },
        this.input, h("button", { type: "submit", class: "strong" }, "Plan")),
      this.names, this.told, this.result);
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
    try {
      const plan = await call(`plan?model=${encodeURIComponent(spec)}`);
      if (this.spec !== spec) return;
      say(this.told, "");
      this.result.replaceChildren(planList(plan));
    } catch (error) {
      if (this.spec !== spec) return;
      this.spec = ""; // what cannot be planned is not asked again
      this.result.replaceChildren();
      say(this.told, error instanceof TypeError ? "the gateway cannot be reached" : error.message);
    }
  }
}
