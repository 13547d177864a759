/** What the page tells the user: the notice below the two texts, and sentences for screen readers. */

import { element } from "./elements.js";

export const SETTLED = 1500; // milliseconds without a change until a translation is read out and stored

let timer = 0;
let speaking = 0; // the timer of the next announcement

/** Show a sentence, and a button that calls `onAction`; without a sentence, hide the notice. */
export function notice(sentence = "", action = "", onAction = null) {
  clearTimeout(timer);
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

/** Have screen readers read `text` after `pause` milliseconds without another call. */
export function announce(text, pause = SETTLED, language = element("target-text").lang) {
  clearTimeout(speaking);
  speaking = setTimeout(() => {
    element("announcement").lang = language;
    element("announcement").textContent = text;
  }, pause);
}
