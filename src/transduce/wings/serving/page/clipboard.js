/** Copying texts to the clipboard. */

import { make } from "./elements.js";
import { announce } from "./messages.js";

/** Copy a text, and say so on the button that was pressed; if the browser refuses, say what to do instead. */
export async function copyFrom(button, text, otherwise) {
  const name = (button.dataset.name ??= button.textContent);
  button.textContent = (await copy(text)) ? "Copied" : otherwise;
  announce(button.textContent, 0, "en");
  setTimeout(() => (button.textContent = name), 1800);
}

/** Copy `text` to the clipboard, even if the page was loaded over plain HTTP; returns whether that succeeded. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const before = document.activeElement;
    const field = make("textarea", "unseen");
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    before?.focus();
    return done;
  }
}
