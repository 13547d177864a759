/** The page's elements and what the browser remembers of it. */

export const element = (id) => document.getElementById(id);

/** A new element with a class and a text; a text is never read as markup. */
export function make(name, className = "", text = "") {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.textContent = text;
  return made;
}

// `storage` is "localStorage" or "sessionStorage". Some private windows refuse even to name them; the page works without.

export function recall(storage, name) {
  try {
    return window[storage].getItem(name);
  } catch {
    return null;
  }
}

export function remember(storage, name, value) {
  try {
    window[storage].setItem(name, value);
  } catch {
    // not remembered
  }
}

export function forget(storage, name) {
  try {
    window[storage].removeItem(name);
  } catch {
    // wasn't remembered
  }
}

/** Put `text` into a text field as if it were typed, so that the browser's undo brings back what was there. */
export function rewrite(field, text) {
  field.focus();
  field.select();
  const done = text ? document.execCommand("insertText", false, text) : document.execCommand("delete");
  if (!done || field.value !== text) {
    field.value = text;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

/** Put `text` on the clipboard, also where the page came over plain HTTP; returns whether it is there. */
export async function copy(text) {
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
