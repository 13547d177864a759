/** The page: translates a text while the user writes it. */

import { Alternatives } from "./alternatives.js";
import { AttentionPanel } from "./attention.js";
import { Documents } from "./documents.js";
import { copy, element, recall, remember, rewrite } from "./elements.js";
import { Facing } from "./facing.js";
import { Languages } from "./languages.js";
import { Failure, ask, keyFor, wantsKey } from "./service.js";
import { countCharacters } from "./text.js";

const PAUSE = 300; // milliseconds after the last keystroke
const SETTLED = 1500; // milliseconds without a change until a screen reader reads the translation
const LONGEST_WAIT = 60; // seconds between retries, unless the server says how long to wait
const DRAFT = "transduce.draft";

const input = element("source-text");
const output = element("target-text");

const facing = new Facing({
  book: element("book"),
  input,
  output,
  mirror: element("mirror"),
  threads: element("threads"),
  onPassage: (passage) => {
    attention.lookAt(passage);
    alternatives.open(passage);
  },
  onWord: (text) => announce(text, 0),
});
const alternatives = new Alternatives(facing, announce);
const attention = new AttentionPanel(facing);

let limit = -1; // characters of a text that the server accepts; -1: no limit
let languages = null; // null until the server has listed them
let running = null; // the AbortController of the newest request
let timer = 0;
let notBefore = 0; // time of the next request after a failure
let failures = 0; // consecutive
let cleared = ""; // the text that "Undo" brings back
let shown = null; // {key, asked, answer} of the translation that is on the page

// -- translating -------------------------------------------------------------------------------------

/** Translate after a pause; a newer call replaces an older one. */
function schedule(pause = PAUSE) {
  clearTimeout(timer);
  timer = setTimeout(translate, Math.max(pause, notBefore - Date.now()));
}

/** Translate the current text. An older request is cancelled; its answer is ignored if it still arrives. */
async function translate() {
  clearTimeout(timer);
  running?.abort();
  running = null;
  if (!languages) return start();
  if (tooLong()) return working(false);
  if (!input.value.trim()) return showNothing();
  const asked = question();
  if (shown?.key === JSON.stringify(asked)) {
    show(shown.asked, shown.answer); // restores the links after an undone change
    return working(false);
  }
  const mine = (running = new AbortController());
  working(true);
  try {
    const answer = await ask("translate", asked, mine.signal);
    if (running === mine) show(asked, answer);
  } catch (error) {
    if (running === mine) report(error);
  } finally {
    if (running === mine) {
      running = null;
      working(false);
    }
  }
}

function show(asked, answer) {
  [failures, notBefore] = [0, 0];
  shown = { key: JSON.stringify(asked), asked, answer };
  notice();
  languages.detect(answer.detectedLanguage);
  const { source, target } = languages.ofTexts;
  input.lang = source;
  output.lang = target;
  alternatives.close();
  facing.show(asked.q, answer.translatedText, answer.alignment ?? [], { source: source || "auto", target });
  dress(true);
  age();
  attention.refresh();
  announce(facing.text);
}

function showNothing() {
  shown = null;
  alternatives.close();
  facing.clear();
  languages.detect(null);
  notice();
  dress(false);
  working(false);
  attention.refresh();
  announce("");
}

function working(yes) {
  output.setAttribute("aria-busy", String(yes));
  element("state").textContent = yes && !output.textContent ? "Translating …" : "";
}

/** The request for a translation of the current text. */
function question() {
  return { q: input.value, ...languages?.codes, format: "text", alignment: true };
}

/** Fade the translation, and disable Copy, if it belongs to another text or to other languages than the current ones. */
function age() {
  const isStale = shown?.key !== JSON.stringify(question());
  output.classList.toggle("stale", isStale);
  element("copy").disabled = isStale;
}

function dress(translated) {
  element("other").hidden = element("copy").hidden = !translated;
}

/** Have screen readers read `text` after `pause` milliseconds without another call. */
function announce(text, pause = SETTLED) {
  clearTimeout(announce.timer);
  announce.timer = setTimeout(() => {
    element("announcement").lang = output.lang;
    element("announcement").textContent = text;
  }, pause);
}

// -- errors ------------------------------------------------------------------------------------------

function report(error) {
  if (!(error instanceof Failure)) throw error;
  if (wantsKey(error)) return notice(error.message, "Enter the key", giveKey);
  if (!error.passes) {
    languages.detect(null); // the last text's language
    return notice(error.message);
  }
  const wait = Math.max(1, error.wait ?? Math.min(LONGEST_WAIT, 2 * 2 ** failures)); // a Retry-After date may be past
  failures++;
  notBefore = Date.now() + wait * 1000;
  notice(error.message, "Try now", tryNow);
  schedule(0);
  countDown();
}

function notice(sentence = "", action = "", onAction = null) {
  clearTimeout(countDown.timer);
  element("notice").hidden = !sentence;
  if (element("notice-text").textContent !== sentence) element("notice-text").textContent = sentence;
  element("notice-wait").textContent = "";
  element("notice-action").textContent = action;
  element("notice-action").hidden = !action;
  element("notice-action").onclick = onAction;
}

function countDown() {
  clearTimeout(countDown.timer);
  const left = Math.ceil((notBefore - Date.now()) / 1000);
  element("notice-wait").textContent = left > 0 ? `Trying again in ${left} s.` : "Trying again …";
  if (left > 0) countDown.timer = setTimeout(countDown, 250);
}

function tryNow() {
  notBefore = 0;
  translate();
}

async function giveKey() {
  if (await keyFor("This server requires an API key.", true)) tryNow();
}

function tooLong() {
  const many = countCharacters(input.value) - limit;
  if (limit < 0 || many <= 0) return false;
  const [more, all] = [many, limit].map((count) => count.toLocaleString("en"));
  notice(`The text is ${more} characters too long: this server accepts at most ${all}.`);
  return true;
}

// -- user input --------------------------------------------------------------------------------------

function written() {
  facing.mirrorText();
  const count = countCharacters(input.value);
  element("count").textContent = limit < 0 ? `${count}` : `${count.toLocaleString("en")} / ${limit.toLocaleString("en")}`;
  element("count").classList.toggle("over", limit >= 0 && count > limit);
  if (input.value) cleared = "";
  element("clear").textContent = cleared ? "Undo" : "Clear";
  element("clear").hidden = !input.value && !cleared;
  element("book").classList.toggle("long", count > 280);
  age();
  remember("sessionStorage", DRAFT, input.value);
}

input.addEventListener("input", (event) => {
  written();
  if (!event.isComposing) schedule(input.value.trim() ? PAUSE : 0);
});
input.addEventListener("compositionend", () => schedule());
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !element("key").open) {
    event.preventDefault();
    tryNow();
  }
});
window.addEventListener("online", () => failures && tryNow());
element("clear").addEventListener("click", () => {
  const text = cleared;
  cleared = input.value; // for Undo
  rewrite(input, text);
});
element("key-open").addEventListener("click", giveKey);
element("copy").addEventListener("click", async () => {
  const done = await copy(facing.text);
  element("copy").textContent = done ? "Copied" : "Select and copy";
  setTimeout(() => (element("copy").textContent = "Copy"), 1800);
});
element("swap").addEventListener("click", () => {
  const text = facing.text;
  languages.swap();
  if (text) rewrite(input, text);
});

// -- start -------------------------------------------------------------------------------------------

let starting = false;

async function start() {
  if (starting) return;
  starting = true;
  try {
    const [settings, known] = await Promise.all([ask("frontend/settings"), ask("languages")]);
    begin(settings, known);
  } catch (error) {
    report(error);
  } finally {
    starting = false;
  }
}

function begin(settings, known) {
  limit = settings.charLimit ?? -1;
  notice();
  languages = new Languages(known, settings.language, () => {
    age();
    schedule(0);
  });
  element("key-open").hidden = !settings.apiKeys;
  if (settings.filesTranslation) new Documents(settings, () => languages.codes);
  written();
  schedule(0);
}

if (!input.value) input.value = recall("sessionStorage", DRAFT) ?? "";
written();
start();
