// The panel that answers "why?": about a target, or about a request.

import { call } from "./api.js";
import { at, h } from "./dom.js";
import { clock, kind, span, why, word } from "./words.js";

const FAILURES = 5; // of a target that are shown
const AGAIN = 2000; // ms; sentences count seconds

const dialog = at("sheet");
dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());

function open(title, ...parts) {
  dialog.replaceChildren(
    h("div", { class: "sheet-in" },
      h("header", { class: "sheet-head" },
        h("h2", { id: "sheet-title" }, title),
        h("button", { type: "button", class: "quiet icon", "aria-label": "Close", onclick: () => dialog.close() }, "✕")),
      ...parts));
  if (!dialog.open) dialog.showModal();
}

/** One request: what was said to the client, and every attempt. */
export function openStory(request) {
  const facts = [
    clock(request.at), request.surface + (request.stream ? ", streamed" : ""), `status ${request.status}`,
    span(request.seconds), request.key && `key ${request.key}`,
    request.output_tokens !== null && `${request.input_tokens} + ${request.output_tokens} tokens`,
  ].filter(Boolean);
  open(request.model || "a refused request",
    request.reason ? h("p", { class: "sentence" }, request.reason) : null,
    h("p", { class: "hint" }, facts.join(" · ")),
    request.attempts.length
      ? h("ol", { class: "story" }, ...request.attempts.map(line))
      : h("p", { class: "hint" }, "No target was asked."),
    h("p", { class: "hint" }, "request ", h("code", {}, request.request_id)));
}

function line(attempt) {
  const facts = [
    attempt.outcome === "skipped" ? "" : span(attempt.seconds),
    attempt.first_content === null ? "" : `first content ${span(attempt.first_content)}`,
    attempt.credential && attempt.credential !== "default" ? `key ${attempt.credential}` : "",
    attempt.then && `then ${attempt.then}`,
  ].filter(Boolean);
  return h("li", { "data-kind": kind(attempt) },
    h("div", { class: "story-head" }, h("code", {}, attempt.target), h("b", { class: "word" }, word(attempt))),
    why(attempt) ? h("p", {}, why(attempt)) : null,
    h("p", { class: "hint" }, facts.join(" · ")));
}

/** One target: the plan's word on it, what is held against it, its last failures, what to do. */
export async function openWhy(store, chain, target, order) {
  const told = h("div", { class: "sheet-in told-now" }, h("p", { class: "hint" }, "asking the gateway…"));
  open(target, told, h("h3", {}, "Take it out"), order.form(target, () => dialog.close()));
  while (dialog.open && told.isConnected) {
    // What somebody is about to press stays where it is.
    if (!document.hidden && !told.contains(document.activeElement)) {
      const found = await asked(chain).catch((error) => error);
      if (found instanceof Error) return told.replaceChildren(h("p", { class: "sentence" }, found.message));
      told.replaceChildren(...held(store, chain, target, order, found));
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN));
  }
}

async function asked(chain) {
  return Promise.all([call(`plan?model=${encodeURIComponent(chain)}`), call("health?limit=1")]);
}

function held(store, chain, target, order, [plan, health]) {
  const own = plan.targets.find((each) => each.target === target);
  const provider = target.slice(0, target.indexOf("/"));
  const marks = Object.entries(health.keys).filter(([key]) =>
    key === target || key.startsWith(`${target}#`) || key.startsWith(`${provider}#`));
  const parts = [
    h("p", { class: "sentence", "data-verdict": own?.verdict }, own ? `${own.verdict}: ${own.reason}` : "no longer part of this chain"),
    ...marks.map(([key, state]) => h("div", { class: "mark-row" },
      h("div", {}, h("code", {}, key), h("p", {}, state.reason)),
      h("button", { type: "button", "aria-label": `Unbench ${key}`, onclick: () => order.unbench(key).then(() => dialog.close(), () => {}) }, "Unbench"))),
    h("h3", {}, `The next request to ${chain}`),
    planList(plan),
    failures(store, target),
  ];
  return parts.filter(Boolean);
}

/** A plan in the words of the core, one line a target. */
export function planList(plan) {
  const worst = `${plan.worst_attempts} attempt${plan.worst_attempts === 1 ? "" : "s"}`;
  return h("div", { class: "plan-told" },
    h("ol", { class: "plan-list" }, ...plan.targets.map((row) =>
      h("li", { "data-verdict": row.verdict },
        h("div", { class: "story-head" }, h("code", {}, row.target), h("b", { class: "verdict" }, row.verdict)),
        h("p", {}, row.reason),
        row.seconds === null ? null : h("p", { class: "hint" }, `${span(row.seconds)} of the deadline${row.window ? `, window ${row.window.toLocaleString("en")}` : ""}`)))),
    h("p", { class: "hint" }, plan.head ? `policy ${plan.policy}, at worst ${worst}` : "nobody would be called"));
}

function failures(store, target) {
  const found = [];
  for (let n = store.requests.length - 1; n >= 0 && found.length < FAILURES; n--) {
    const request = store.requests[n];
    for (const attempt of request.attempts) {
      if (attempt.target === target && attempt.outcome === "failed") found.push([request, attempt]);
    }
  }
  if (!found.length) return null;
  return h("div", {},
    h("h3", {}, "Its last failures"),
    h("ol", { class: "story" }, ...found.slice(0, FAILURES).map(([request, attempt]) =>
      h("li", { "data-kind": kind(attempt) },
        h("div", { class: "story-head" }, h("span", { class: "hint" }, clock(request.at)), h("b", { class: "word" }, word(attempt))),
        h("p", {}, why(attempt))))));
}
