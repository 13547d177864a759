/** Access to the page's elements and the browser's storage. */

export const element = (id) => document.getElementById(id);

/** A new element with a class and a text; the text is never parsed as markup. */
export function make(name, className = "", text = "") {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.textContent = text;
  return made;
}

// `storage` is "localStorage" or "sessionStorage". In some private windows, any access throws; the page works without.

export function recall(storage, name) {
  try {
    return window[storage].getItem(name);
  } catch {
    return null;
  }
}

/** The JSON value that is stored on this device; null if it is missing or damaged. */
export function recallJson(name, storage = "localStorage") {
  try {
    return JSON.parse(recall(storage, name));
  } catch {
    return null;
  }
}

/** Store a text; returns whether the browser has stored it. */
export function remember(storage, name, value) {
  try {
    window[storage].setItem(name, value);
    return true;
  } catch {
    return false;
  }
}

export function forget(storage, name) {
  try {
    window[storage].removeItem(name);
  } catch {
    // wasn't remembered
  }
}

/** Put `text` into a text field as if it were typed, so that the browser's undo restores the old text. */
export function rewrite(field, text) {
  field.focus();
  field.select();
  const escaped = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll("\n", "<br>").replace(/<br>$/, "$&$&");
  const done = text.includes("\n") // insertText takes a second for 300 lines, and a minute for 1,600
    ? document.execCommand("insertHTML", false, escaped)
    : document.execCommand(text ? "insertText" : "delete", false, text);
  if (!done || field.value !== text) {
    field.value = text;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}
