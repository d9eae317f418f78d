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
  else if (attempt.benched) bench = `, benched for ${short(attempt.benched)} s`;
  return `${status}${attempt.reason}${bench}`.replace(/^, /, "");
}

/** The gateway's sentence on a bench, its seconds counted on: it was told a while ago. */
export function sentence(reason, remaining) {
  const now = String(Math.max(0, Math.ceil(remaining)));
  return reason.replace(/, [\d.e+]+ s left of /, `, ${now} s left of `);
}

export function short(number) {
  return String(Number(number.toPrecision(3)));
}

/** `0.57 ms`, `1.2 s` */
export function span(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  return seconds > 0 && seconds < 0.1 ? `${short(seconds * 1000)} ms` : `${short(seconds)} s`;
}

/** A countdown: `4 s`, `9:58`, `2 h 05`, `3 d` */
export function left(seconds) {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}:${two(whole % 60)}`;
  if (whole < 172800) return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))}`;
  return `${Math.floor(whole / 86400)} d`;
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
