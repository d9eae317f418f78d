// Puts the page together: news in, parts shown, the key asked for where one is needed.

import { Barred, Feed, key } from "./api.js";
import { at, h, put, say } from "./dom.js";
import { Lanes } from "./lanes.js";
import { Ledger, Orders } from "./ledger.js";
import { PlanBox } from "./plan.js";
import { Requests } from "./requests.js";
import { openStory, openWhy } from "./sheet.js";
import { Store } from "./store.js";
import { Targets, Tiles } from "./targets.js";
import { plural } from "./words.js";

const LINKS = { waiting: "connecting…", live: "live", lost: "reconnecting…", barred: "admin key needed" };

const store = new Store();
const orders = new Orders(obeyed);
const lanes = new Lanes(store, (chain, target) => openWhy(store, chain, target, orders));
const requests = new Requests(store, openStory);
const ledger = new Ledger(store, orders);
const plan = new PlanBox(store);
const targets = new Targets(store);
const tiles = new Tiles(store);

const news = {
  hello(told) {
    store.hello(told);
    link("live");
    requests.reset();
    healthShown();
    numbersShown();
  },
  past(told) {
    store.past(told.requests);
    requests.past(told.requests);
    numbersLater();
  },
  requests(told) {
    store.finished(told.requests);
    requests.added(told.requests);
  },
  health(told) {
    store.health(told);
    healthShown();
    announce(told.ledger);
  },
  rates(told) {
    store.rates(told);
    numbersShown();
    plan.tick();
  },
};

function healthShown() {
  lanes.show();
  ledger.show();
  plan.changed();
  headline();
}

function numbersShown() {
  tiles.show();
  targets.show();
  requests.rescale();
  facts();
}

let planned = 0;
function numbersLater() {
  clearTimeout(planned);
  planned = setTimeout(numbersShown, 50);
}

/** The one thing to know, as a sentence. */
function headline() {
  const rows = new Map(store.lanes.flatMap((lane) => lane.targets.map((row) => [row.target, row])));
  const others = Object.keys(store.keys).filter((key) => store.keys[key].benched && !rows.has(key) && !key.includes("#"));
  const out = [...rows.values()].filter((row) => !row.tried).map((row) => row.target).concat(others);
  const dark = store.lanes.filter((lane) => !lane.head).map((lane) => lane.name);
  const unsure = store.lanes.filter((lane) => lane.head && !lane.targets.some(sure)).map((lane) => lane.name);
  const rest = unsure.length ? `${listed(unsure)} ${unsure.length === 1 ? "has" : "have"} only unproven targets` : "every chain still answers";
  const title = at("headline");
  put(title, "data-mood", dark.length ? "bad" : out.length || unsure.length ? "mixed" : "good");
  if (!rows.size) say(title, "No chain has been used yet");
  else if (dark.length) say(title, `Nobody can answer ${listed(dark)} now`);
  else if (out.length) say(title, `${listed(out)} ${out.length === 1 ? "sits" : "sit"} out; ${rest}`);
  else if (unsure.length) say(title, `Nobody sits out; ${rest}`);
  else say(title, rows.size === 1 ? "The one target can be asked" : `All ${rows.size} targets can be asked`);
}

/** May it be tried, and is nothing known that speaks against it? */
function sure(row) {
  return row.tried && row.state !== "unproven";
}

function listed(names) {
  return names.length <= 2 ? names.join(" and ") : `${names.slice(0, 2).join(", ")} and ${names.length - 2} more`;
}

function facts() {
  const parts = [`policy ${store.policy}`, `${store.inFlight} in flight`, `${plural(store.requests.length, "request")} remembered`];
  if (store.status === "draining") parts.unshift("draining");
  say(at("facts"), parts.join(" · "));
}

function announce(entries) {
  const log = at("said");
  for (const entry of entries) {
    const reason = entry.kind === "bench" ? (store.keys[entry.key]?.reason ?? "benched") : "cleared";
    log.append(h("p", {}, `${entry.key}: ${reason}`));
  }
  while (log.children.length > 5) log.firstChild.remove();
}

function link(word) {
  const element = at("link");
  put(element, "data-link", word);
  put(document.documentElement, "data-link", word);
  say(element.lastElementChild, LINKS[word]);
}

// -- the key ----------------------------------------------------------------------------------

/** Asks for the admin key; resolves once one was given. Kept until the tab is closed. */
function askForKey(why) {
  const dialog = at("ask");
  return new Promise((resolve) => {
    const input = h("input", { type: "password", id: "secret", autocomplete: "current-password", required: true });
    const finish = (event) => {
      event.preventDefault();
      key.set(input.value.trim());
      dialog.close();
    };
    dialog.replaceChildren(
      h("form", { method: "dialog", onsubmit: finish },
        h("h2", { id: "ask-title" }, "Admin key"),
        h("p", {}, why),
        h("label", { for: "secret" }, "Key"), input,
        h("p", { class: "hint" }, "Kept in this tab only, until it is closed."),
        h("div", { class: "buttons" },
          h("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Cancel"),
          h("button", { type: "submit", class: "strong" }, "Use it"))));
    dialog.onclose = () => resolve(key.get());
    if (!dialog.open) dialog.showModal();
  });
}

/** Runs an order; where the key is missing, asks for it and tries once more. */
async function obeyed(order) {
  try {
    return await order();
  } catch (error) {
    if (!(error instanceof Barred)) throw error;
    await askForKey(error.message);
    const told = await order();
    feed.again();
    return told;
  }
}

const feed = new Feed({
  event: (name, told) => news[name]?.(told),
  link,
  barred: async (why) => {
    const before = key.get();
    if ((await askForKey(why)) === before) await new Promise((resolve) => (feed.wake = resolve));
  },
});

at("key").addEventListener("click", async () => {
  await askForKey(key.get() ? "Another key replaces the one in use." : "Sent as Authorization: Bearer with every call.");
  feed.again();
});

at("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = getComputedStyle(root).colorScheme === "dark" || (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  root.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem("understudy-theme", root.dataset.theme);
  } catch {
    // Forgotten on the next visit, no more.
  }
});

setInterval(() => {
  lanes.tick();
  ledger.tick();
}, 250);

const barred = document.querySelector("meta[name=barred]").content;
if (barred && !key.get()) {
  link("barred");
  await askForKey(barred);
}
feed.run();
