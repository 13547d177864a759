/**
 * What depends on the device: the colours, and the help for keys. The colours are light, dark or as in the system; the
 * choice is kept on this device.
 */

import { element, forget, recall, remember } from "./elements.js";

const THEME = "transduce.theme";

function apply(theme) {
  document.documentElement.dataset.theme = theme;
  globalThis.transduce?.repaint(); // the drawing of the attention, if it is loaded
}

const select = element("theme"); // null in /docs, which has no help either
apply(recall("localStorage", THEME) ?? "");
if (select) {
  select.value = document.documentElement.dataset.theme;
  select.addEventListener("change", () => {
    if (select.value) remember("localStorage", THEME, select.value);
    else forget("localStorage", THEME);
    apply(select.value);
  });
  if (/Mac|iPhone|iPad/.test(navigator.platform)) element("modifier").textContent = "⌘";
  const isTouch = matchMedia("(hover: none) and (pointer: coarse)").matches;
  if (isTouch) element("target-text").removeAttribute("aria-describedby"); // it is about keys
}
