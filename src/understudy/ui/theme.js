// Before the first paint, so that no theme flashes by. "" follows the system.
"use strict";
try {
  const chosen = localStorage.getItem("understudy-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be forbidden; the system's choice will do.
}
