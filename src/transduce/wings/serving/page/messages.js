/** What the page tells the user: the notice below the two texts, and sentences for screen readers. */

import { element } from "./elements.js";

export const SETTLED = 1500; // milliseconds without a change until a translation is read out and stored

let timer = 0;
let waiting = 0; // the timer after which the server is called slow
let speaking = 0; // the timer of the next announcement

/** Show a sentence, and a button that calls `onAction`; without a sentence, hide the notice. */
export function notice(sentence = "", action = "", onAction = null) {
  clearTimeout(timer);
  if (!action && document.activeElement === element("notice-action")) element("source-text").focus({ preventScroll: true });
  element("notice").hidden = !sentence;
  if (element("notice-text").textContent !== sentence) element("notice-text").textContent = sentence;
  element("notice-wait").textContent = "";
  element("notice-action").textContent = action;
  element("notice-action").hidden = !action;
  element("notice-action").onclick = onAction;
}

/** Show how many seconds are left until the time `end`. */
export function countDown(end) {
  clearTimeout(timer);
  const left = Math.ceil((end - Date.now()) / 1000);
  element("notice-wait").textContent = left > 0 ? `Trying again in ${left} s.` : "Trying again …";
  if (left > 0) timer = setTimeout(countDown, 250, end);
}

/** Say that the server is asked for a translation, and after 30 seconds that it is slow, or that it is not asked. */
export function busy(yes, onAction) {
  element("target-text").setAttribute("aria-busy", String(yes));
  clearTimeout(waiting);
  if (yes) waiting = setTimeout(notice, 30_000, "The server is slow: no answer for 30 seconds.", "Try again", onAction);
}

/** Have screen readers read `text` after `pause` milliseconds without another call. */
export function announce(text, pause = SETTLED, language = element("target-text").lang) {
  clearTimeout(speaking);
  speaking = setTimeout(() => {
    element("announcement").lang = language;
    element("announcement").textContent = text;
  }, pause);
}
