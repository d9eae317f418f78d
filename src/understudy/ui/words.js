// Words and numbers for people. Sentences about health and failures come from the gateway.

export const STATES = {
  healthy: "healthy",
  counting: "counting failures",
  benched: "benched",
  probing: "probing",
  unproven: "bench over, unproven",
  degraded: "degraded credential",
  out_of_credits: "out of credits",
};

// Which colour an attempt has: by what can be done about it.
const KINDS = {
  unknown: "passing", transient: "passing", empty_content: "passing",
  stall_pre_first_byte: "passing", stall_mid_stream: "passing",
  rate_limit: "limited",
  auth: "account", out_of_credits: "account",
  context_length: "request", permanent: "request", model_not_found: "request", unsupported: "request",
  client_disconnect: "left",
};
export const COLOURS = {
  ok: "answered",
  passing: "failed, may pass",
  limited: "rate limited",
  account: "key or credits",
  request: "request or model",
  skipped: "skipped",
  left: "client left",
};

export function kind(attempt) {
  if (attempt.outcome === "ok") return "ok";
  if (attempt.outcome === "skipped") return "skipped";
  if (attempt.outcome === "cancelled") return "left";
  return KINDS[attempt.fault] ?? "passing";
}

/** `ok`, the fault, `skipped` or `cancelled`: as in headers and logs. */
export function word(attempt) {
  return attempt.outcome === "failed" && attempt.fault ? attempt.fault : attempt.outcome;
}

/** An attempt's reason with its status and whom it benched: as the command line writes it. */
export function why(attempt) {
  const status = attempt.status ? `(${attempt.status}) ` : "";
  let bench = "";
  if (attempt.benched === null) bench = ", benched until cleared";
  else if (attempt.benched) bench = `, benched for ${inSeconds(attempt.benched)}`;
  return `${status}${attempt.reason}${bench}`.replace(/^, /, "");
}

/** The gateway's sentence on a bench, its seconds counted on: it was told a while ago. */
export function sentence(reason, remaining) {
  const now = inSeconds(Math.max(0, Math.ceil(remaining)));
  return reason.replace(/^([^:]*?), [\d.]+ (?:s|min|h|d)(?: \d+ (?:s|min|h))? left of /, `$1, ${now} left of `);
}

export function short(number) {
  return String(Number(number.toPrecision(3)));
}

// Each unit in seconds, and the one that tells the rest.
const UNITS = [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]];

/** `4.2 s`, `300 s`, `29 min 38 s`, `2 d 23 h`: as `in_seconds` of the gateway's core has it. */
export function inSeconds(seconds) {
  if (seconds < 100) return `${seconds >= 0.0001 ? short(seconds) : 0} s`;
  const whole = Math.round(seconds);
  if (whole <= 600) return `${whole} s`;
  const [size, unit, small, less] = UNITS.find(([least]) => whole >= least);
  const rest = Math.floor((whole % size) / small);
  return `${Math.floor(whole / size)} ${unit}${rest ? ` ${rest} ${less}` : ""}`;
}

/** `0.57 ms`, `1.2 s` */
export function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  return seconds > 0 && seconds < 0.1 ? `${short(seconds * 1000)} ms` : inSeconds(seconds);
}

/** A name in parts: where its model lies, the model, and the end of it that tells it from others. */
export function parts(name) {
  if (name.includes(",")) return ["", name, ""]; // a spec of several is no path
  const path = name.lastIndexOf("/") + 1;
  const cut = path < 8 ? 0 : path;
  const end = name.length - cut > 16 ? name.length - 10 : name.length;
  return [name.slice(0, cut), name.slice(cut, end), name.slice(end)];
}

/** A countdown: `4 s`, `9:58`, `2 h 5 min`, `2 d 23 h` */
export function left(seconds) {
  const whole = Math.ceil(seconds);
  if (whole >= 3600) return inSeconds(whole);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)}:${two(whole % 60)}`;
}

export function clock(epoch) {
  const time = new Date(epoch * 1000);
  return [time.getHours(), time.getMinutes(), time.getSeconds()].map(two).join(":");
}

export function plural(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

export function percent(part, whole) {
  if (!whole) return "–";
  const share = (100 * part) / whole;
  return `${share > 0 && share < 10 ? share.toFixed(1) : Math.round(share)} %`;
}

export function rate(number) {
  return number >= 10 ? Math.round(number).toLocaleString("en") : short(Math.round(number * 100) / 100);
}

function two(number) {
  return String(number).padStart(2, "0");
}
