// Small charts: one path each, coloured by the style sheet. The number beside says it in words.

import { svg } from "./dom.js";

const WIDTH = 120;
const HEIGHT = 32;
const BARS = 40; // at most

function canvas(label, ...paths) {
  return svg("svg", {
    class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true",
    "data-chart": label,
  }, ...paths);
}

/** A line over a soft ground; seconds without a value are bridged, `step` values make one point. */
export class Line {
  constructor(label) {
    this.ground = svg("path", { class: "ground" });
    this.line = svg("path", { class: "line" });
    this.element = canvas(label, this.ground, this.line);
  }

  draw(values, least = 0) {
    const points = [];
    const top = Math.max(least, ...values.map((value) => value ?? 0)) || 1;
    values.forEach((value, n) => {
      if (value === null) return;
      const x = (n / (values.length - 1)) * WIDTH;
      points.push([x, HEIGHT - 2 - (value / top) * (HEIGHT - 5)]);
    });
    const path = points.map(([x, y], n) => `${n ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
    const alone = points.length === 1 ? "h.01" : "";
    this.line.setAttribute("d", path + alone);
    const ends = points.length > 1 ? `L${points.at(-1)[0].toFixed(1)} ${HEIGHT}L${points[0][0].toFixed(1)} ${HEIGHT}Z` : "";
    this.ground.setAttribute("d", ends ? path + ends : "");
  }
}

/** Bars of three parts on top of each other: answered, failed, skipped. */
export class Bars {
  constructor(label) {
    this.parts = ["ok", "failed", "skipped"].map((name) => svg("path", { class: `bar ${name}` }));
    this.element = canvas(label, ...this.parts);
  }

  draw(counts) {
    const groups = [];
    const step = Math.ceil(counts.length / BARS);
    for (let n = 0; n < counts.length; n += step) {
      groups.push(counts.slice(n, n + step).reduce(added, [0, 0, 0]));
    }
    const top = Math.max(1, ...groups.map(([ok, failed, skipped]) => ok + failed + skipped));
    const wide = WIDTH / groups.length;
    const paths = ["", "", ""];
    groups.forEach((group, n) => {
      let y = HEIGHT;
      group.forEach((value, part) => {
        if (!value) return;
        const tall = Math.max(1.5, (value / top) * (HEIGHT - 2));
        y -= tall;
        paths[part] += `M${(n * wide).toFixed(2)} ${y.toFixed(2)}h${(wide * 0.7).toFixed(2)}v${tall.toFixed(2)}h${(-wide * 0.7).toFixed(2)}z`;
      });
    });
    this.parts.forEach((part, n) => part.setAttribute("d", paths[n]));
  }
}

function added(sum, found) {
  return found ? [sum[0] + found.ok, sum[1] + found.failed, sum[2] + found.skipped] : sum;
}
