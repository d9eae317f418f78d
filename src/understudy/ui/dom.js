// Elements from values. Texts are only ever set as text.

import { parts } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";

/** h("p", {class: "hint", onclick: go}, "text", child) */
export function h(tag, props = {}, ...children) {
  return filled(document.createElement(tag), props, children);
}

export function svg(tag, props = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), props, children);
}

function filled(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export const at = (id) => document.getElementById(id);

/** Change a text only if it is another: less for the browser, and for screen readers. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A name that is cut in its middle where room is short: the model stays in sight. */
export function name(element, text) {
  if (element.textContent === text) return;
  element.classList.add("cut");
  element.title = text;
  element.replaceChildren(...parts(text).map((part, n) => part && h("span", { class: ["place", "stem", "end"][n] }, part)).filter(Boolean));
}

export function put(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** Children of `parent` by key, made once and updated in place, so that focus stays. */
export class Keyed {
  constructor(parent, make) {
    this.parent = parent;
    this.make = make;
    this.known = new Map();
  }

  show(rows, keyOf) {
    const seen = new Set();
    let before = this.parent.firstChild;
    for (const row of rows) {
      const key = keyOf(row);
      seen.add(key);
      let part = this.known.get(key);
      if (!part) this.known.set(key, (part = this.make(row)));
      part.update(row);
      if (part.element === before) before = before.nextSibling;
      else this.parent.insertBefore(part.element, before);
    }
    for (const [key, part] of this.known) {
      if (seen.has(key)) continue;
      part.element.remove();
      this.known.delete(key);
    }
  }
}
