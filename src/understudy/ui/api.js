// The gateway's interface: calls with the admin key, and the live feed that heals by itself.

const KEY = "understudy-admin-key";
const BASE = "api/";
const SILENCE = 10_000; // ms without any news (rates come every second): the line is dead
const WAITS = [400, 800, 1600, 3200, 6400]; // ms before the next try

export class Barred extends Error {}

export const key = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (secret) => (secret ? sessionStorage.setItem(KEY, secret) : sessionStorage.removeItem(KEY)),
};

function headers(more = {}) {
  const secret = key.get();
  return secret ? { ...more, authorization: `Bearer ${secret}` } : more;
}

/** GET, or POST where a body is given; throws what the gateway says is wrong. */
export async function call(path, body) {
  const answer = await fetch(BASE + path, body
    ? { method: "POST", headers: headers({ "content-type": "application/json" }), body: JSON.stringify(body) }
    : { headers: headers() });
  const told = await answer.json().catch(() => ({}));
  if (answer.ok) return told;
  const said = told.error?.message ?? `the gateway answered ${answer.status}`;
  throw answer.status === 401 ? new Barred(said) : new Error(said);
}

/** Reads the feed for ever. `on` has: event(name, data), link(word), barred(why). */
export class Feed {
  constructor(on) {
    this.on = on;
    this.failures = 0;
    this.wake = () => {};
    this.cut = () => {};
    addEventListener("online", () => this.wake());
    document.addEventListener("visibilitychange", () => document.hidden || this.wake());
  }

  async run() {
    for (;;) {
      try {
        await this.listen();
      } catch (error) {
        if (error instanceof Barred) {
          this.on.link("barred");
          await this.on.barred(error.message);
          continue;
        }
      }
      this.on.link("lost");
      await this.pause();
    }
  }

  /** Start over, with another key. */
  again() {
    this.cut();
    this.wake();
  }

  async listen() {
    const control = new AbortController();
    this.cut = () => control.abort();
    let timer = setTimeout(this.cut, SILENCE);
    try {
      const answer = await fetch(`${BASE}events`, { headers: headers(), signal: control.signal, cache: "no-store" });
      if (answer.status === 401) throw new Barred((await answer.json()).error.message);
      if (!answer.ok) throw new Error(String(answer.status));
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      const decoder = new Decoder(this.on.event);
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(this.cut, SILENCE);
        this.failures = 0;
        decoder.feed(value);
      }
    } finally {
      clearTimeout(timer);
      control.abort();
    }
  }

  pause() {
    const base = WAITS[Math.min(this.failures++, WAITS.length - 1)];
    const wait = base * (0.75 + Math.random() / 2); // many pages must not return as one
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, wait);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** Server-sent events out of pieces of text. */
export class Decoder {
  constructor(event) {
    this.event = event;
    this.tail = "";
  }

  feed(text) {
    const blocks = (this.tail + text).split("\n\n");
    this.tail = blocks.pop();
    for (const block of blocks) {
      const fields = new Map(block.split("\n").map((line) => {
        const cut = line.indexOf(": ");
        return [line.slice(0, cut), line.slice(cut + 2)];
      }));
      if (fields.has("data")) this.event(fields.get("event"), JSON.parse(fields.get("data")));
    }
  }
}
