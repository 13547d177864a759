/** The last translations, stored on this device while the user wants it. */

import { element, forget, make, recallJson, remember } from "./elements.js";
import { SETTLED } from "./messages.js";

const ENTRIES = "transduce.history"; // absent: the history is off
const MAX_ENTRIES = 50; // as index.html says

export class History {
  /** `open` is called with the entry that the user chose, `nameOf` returns the name of a language. */
  constructor(open, nameOf) {
    Object.assign(this, { open, nameOf, pending: null, draft: 0, timer: 0 });
    this.keep = element("history-keep");
    this.keep.addEventListener("change", () => this.turn(this.keep.checked));
    element("history-clear").addEventListener("click", () => this.clear());
    window.addEventListener("pagehide", () => this.flush());
    window.addEventListener("storage", ({ key }) => key === ENTRIES && this.render()); // another tab
    this.render();
  }

  /** The entries {q, source, target, translation, isChosen, time}, newest first; null if the history is off. */
  get entries() {
    const entries = recallJson(ENTRIES);
    return Array.isArray(entries) ? entries.filter(isEntry) : null;
  }

  turn(on) {
    if (!on) forget("localStorage", ENTRIES);
    const isRefused = on && !remember("localStorage", ENTRIES, "[]");
    this.render(isRefused ? "This browser refuses to store data, so there is no history." : "");
    this.flush(); // the translation that is on the page
  }

  clear() {
    this.pending = null;
    remember("localStorage", ENTRIES, "[]");
    this.render();
    this.keep.focus();
  }

  /** Store a translation when it has not changed for a while, or at the next `flush`. */
  note(entry) {
    if (this.pending?.isChosen && this.pending.q !== entry.q) this.flush();
    this.pending = { ...entry, time: Date.now() };
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.flush(), SETTLED);
  }

  /** The user has left the text: the next one is no edit of it. */
  leave() {
    this.flush();
    [this.pending, this.draft] = [null, 0];
  }

  /** Store the pending translation, in the place of its draft. While the history is off, it stays pending. */
  flush() {
    clearTimeout(this.timer);
    const { entries, pending, draft } = this;
    if (!entries || !pending) return;
    [this.pending, this.draft] = [null, pending.time];
    const isDraft = (each) => each.time === draft && !each.isChosen && isEditOf(pending, each);
    const others = entries.filter((each) => !isSame(each, pending) && !isDraft(each));
    const chosen = entries.find((each) => each.isChosen && !pending.isChosen && isSame(each, pending));
    const newest = chosen ? { ...chosen, time: pending.time } : pending; // what the user chose stays
    const all = [newest, ...others].slice(0, MAX_ENTRIES);
    while (all.length && !remember("localStorage", ENTRIES, JSON.stringify(all))) all.length >>= 1; // full
    this.render(all.length ? "" : "This browser's storage is full: the last translation is not stored.");
  }

  render(sentence = "") {
    const entries = this.entries;
    this.keep.checked = entries !== null;
    element("history-clear").hidden = !entries?.length;
    element("history-state").textContent = sentence || (entries?.length === 0 ? "The history is empty." : "");
    element("history-list").replaceChildren(...(entries ?? []).map((entry) => this.item(entry)));
  }

  item(entry) {
    const button = make("button", "entry");
    button.type = "button";
    button.addEventListener("click", () => this.open(entry));
    for (const [text, code] of [[entry.q, entry.source], [entry.translation, entry.target]]) {
      const words = make("span", "words", text);
      words.dir = "auto";
      words.lang = code === "auto" ? "" : code;
      button.append(words);
    }
    const time = new Date(entry.time).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
    button.append(make("span", "soft", `${this.nameOf(entry.source)} to ${this.nameOf(entry.target)}, ${time}`));
    const item = make("li");
    item.append(button);
    return item;
  }
}

function isEntry(value) {
  return ["q", "source", "target", "translation"].every((name) => typeof value?.[name] === "string") &&
    Number.isFinite(value.time);
}

const isSame = (a, b) => ["q", "source", "target"].every((name) => a[name] === b[name]);

/** Whether most of the text of an older entry is left at the beginning and the end of a newer text. */
function isEditOf(newer, older) {
  if (newer.source !== older.source || newer.target !== older.target) return false;
  const [a, b] = [newer.q, older.q];
  const least = Math.min(a.length, b.length);
  let [begin, end] = [0, 0];
  while (begin < least && a[begin] === b[begin]) begin++;
  while (end < least - begin && a.at(-1 - end) === b.at(-1 - end)) end++;
  return begin + end >= 0.8 * b.length;
}
