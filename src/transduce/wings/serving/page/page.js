/** The page: translates a text while the user writes it. */

import { Alternatives } from "./alternatives.js";
import { AttentionPanel } from "./attention.js";
import { copyFrom } from "./clipboard.js";
import { Documents } from "./documents.js";
import { element, recall, remember, rewrite } from "./elements.js";
import { Facing } from "./facing.js";
import { Glossary } from "./glossary.js";
import { History } from "./history.js";
import { Languages } from "./languages.js";
import { readLink, removeLink, writeLink } from "./link.js";
import { SETTLED, announce, busy, countDown, notice } from "./messages.js";
import { findDoubtful, showQuality } from "./quality.js";
import { Failure, ask, keyFor, wantsKey } from "./service.js";
import { countCharacters } from "./text.js";

const PAUSE = 300; // milliseconds after the last keystroke
const LONGEST_WAIT = 60; // seconds between retries, unless the server says how long to wait
const DRAFT = "transduce.draft";

const input = element("source-text");
const output = element("target-text");

let limit = -1; // characters of a text that the server accepts; -1: no limit
let languages = null; // null until the server has listed them
let running = null; // the AbortController of the newest request
let timer = 0;
let aging = 0; // the timer after which an outdated translation is called so
let notBefore = 0; // time of the next request after a failure
let failures = 0; // consecutive
let cleared = ""; // the text that "Undo" brings back
let shown = null; // {key, asked, answer} of the translation that is on the page; `isStored`: it is from the history

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
const alternatives = new Alternatives(facing, () => shown.asked.glossary, taken);
const attention = new AttentionPanel(facing);
const glossary = new Glossary(() => {
  age();
  schedule(SETTLED);
});
const history = new History(fill, (code) => languages?.name(code) ?? code);

// -- translating --

/** Translate after a pause; a newer call replaces an older one. */
function schedule(pause = PAUSE) {
  clearTimeout(timer);
  timer = setTimeout(translate, !languages || input.value.trim() ? Math.max(pause, notBefore - Date.now()) : pause);
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
  if (shown?.key === JSON.stringify(asked) && !shown.isStored) {
    show(shown.asked, shown.answer); // restores the links after an undone change
    return working(false);
  }
  const mine = (running = new AbortController());
  working(true);
  try {
    const answer = await ask("translate", asked, mine.signal);
    if (running === mine) update(asked, answer);
  } catch (error) {
    if (running === mine) report(error);
  } finally {
    if (running === mine) {
      running = null;
      working(false);
    }
  }
}

/** Show a new answer, unless another translation of the same text was opened from the history. */
function update(asked, answer) {
  const isOther = shown?.isStored && !isStale() && answer.translatedText !== facing.text;
  if (!isOther) return show(asked, answer);
  notice("This is from the history. The server's own differs.", "Show", () => show(asked, answer, false, true));
}

function show(asked, answer, isStored = false, isPicked = false) {
  [failures, notBefore] = [0, 0];
  shown = { key: JSON.stringify(asked), asked, answer, isStored };
  notice();
  glossary.check("");
  glossary.showUsed(answer.terms);
  languages.detect(answer.detectedLanguage);
  const [{ source }, { target }] = [languages.ofTexts, asked];
  [input.lang, output.lang] = [source, target];
  alternatives.close();
  const request = { source: source || "auto", target, glossary: asked.glossary };
  facing.show(asked.q, answer.translatedText, answer.alignment ?? [], request);
  element("other").hidden = element("copy").hidden = false;
  age();
  taken(SETTLED, isPicked);
  attention.refresh();
  findDoubtful(answer, facing);
}

/** Note the translation as shown, with the chosen alternatives. The estimate is only of the server's own translation. */
function taken(pause = SETTLED, isPicked = false) {
  const { source, target } = facing.request;
  const [translation, isChosen] = [facing.text, isPicked || facing.text !== shown.answer.translatedText];
  showQuality(translation === shown.answer.translatedText ? shown.answer : {}, facing.passages);
  history.note({ q: shown.asked.q, source, target, translation, isChosen });
  announce(facing.text, pause);
}

/** Fill the page with a text, and with its translation if there is one. */
function fill({ q, source, target, translation }) {
  if (!languages) return;
  history.leave();
  languages.choose({ source, target });
  rewrite(input, q);
  if (translation && languages.codes.target === target) show(question(), { translatedText: translation }, true);
  schedule(0);
}

function showNothing() {
  shown = null;
  history.leave();
  showQuality();
  alternatives.close();
  facing.clear();
  glossary.showUsed();
  languages.detect(null);
  notice();
  element("other").hidden = element("copy").hidden = true;
  working(false);
  attention.refresh();
  announce("");
}

function working(yes) {
  busy(yes, tryNow);
  if (yes || !shown) element("state").textContent = yes ? "Translating …" : "";
  else sayOutdated();
}

function sayOutdated() {
  if (shown && !running) element("state").textContent = isStale() ? "The translation of an earlier text" : "";
}

/** The request for a translation of the current text. */
function question() {
  const terms = Object.keys(glossary.terms).length ? { glossary: glossary.terms } : {};
  return { q: input.value, ...languages?.codes, format: "text", alignment: true, scores: true, ...terms };
}

/** Whether the translation belongs to another text, to other languages or another glossary than the current ones. */
function isStale() {
  return shown?.key !== JSON.stringify(question());
}

/** Fade the translation and disable Copy if the translation is stale, and say so if it stays stale. */
function age() {
  const isOld = isStale();
  output.classList.toggle("stale", isOld);
  element("copy").disabled = isOld;
  clearTimeout(aging);
  if (isOld) aging = setTimeout(sayOutdated, 1000);
  else sayOutdated();
}

// -- errors --

function report(error) {
  if (!(error instanceof Failure)) throw error;
  if (wantsKey(error)) return notice(error.message, "Enter the key", giveKey);
  if (!error.passes) {
    languages?.detect(null); // the last text's language
    if (!glossary.refuse(error.message)) return notice(error.message);
    return notice("The text is not translated: the glossary has an error.", "Open the glossary", () => glossary.open());
  }
  const wait = Math.max(1, error.wait ?? Math.min(LONGEST_WAIT, 2 * 2 ** failures)); // a Retry-After date may be past
  failures++;
  notBefore = Date.now() + wait * 1000;
  notice(error.message, "Try now", tryNow);
  schedule(0);
  countDown(notBefore);
}

function tryNow() {
  notBefore = 0;
  translate();
}

async function giveKey() {
  if (await keyFor(undefined, true)) tryNow();
}

function tooLong() {
  const many = countCharacters(input.value) - limit;
  if (limit < 0 || many <= 0) return false;
  const [more, all] = [many, limit].map((count) => count.toLocaleString("en"));
  notice(`The text is ${more} characters too long: this server accepts at most ${all}.`);
  return true;
}

// -- user input --

function written() {
  facing.mirrorText();
  const count = countCharacters(input.value);
  element("count").textContent = limit < 0 ? `${count}` : `${count.toLocaleString("en")} / ${limit.toLocaleString("en")}`;
  element("count").classList.toggle("over", limit >= 0 && count > limit);
  if (input.value) cleared = "";
  element("clear").textContent = cleared ? "Undo" : "Clear";
  element("clear").hidden = !input.value && !cleared;
  element("link").hidden = !input.value;
  element("book").classList.toggle("long", count > 280);
  age();
  remember("sessionStorage", DRAFT, input.value);
  if (readLink() && readLink().q !== input.value) removeLink();
}

input.addEventListener("input", (event) => {
  if (/^insertFrom/.test(event.inputType) && event.data?.replace(/\r\n?/g, "\n") === input.value) history.leave();
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
element("copy").addEventListener("click", () => {
  history.flush();
  copyFrom(element("copy"), facing.text, "Select and copy");
});
element("link").addEventListener("click", () => {
  copyFrom(element("link"), writeLink({ q: input.value, ...languages?.codes }), "Copy it from the address bar");
});

element("swap").addEventListener("click", () => {
  const text = isStale() ? "" : facing.text;
  languages.swap();
  if (text) rewrite(input, text);
});

// -- start --

let starting = false;
async function start() {
  if (starting) return;
  starting = true;
  try {
    begin(...(await Promise.all([ask("frontend/settings"), ask("languages")])));
  } catch (error) {
    report(error);
  } finally {
    starting = false;
  }
}

function begin(settings, known) {
  limit = settings.charLimit ?? -1;
  alternatives.keeps = settings.suggestions;
  if (settings.suggestions) element("other").textContent = "Change";
  notice();
  languages = new Languages(known, settings.language, () => {
    glossary.show(languages);
    age();
    schedule(0);
  });
  glossary.show(languages);
  history.render(); // with the names of the languages
  if (readLink()) languages.choose(readLink());
  element("key-open").hidden = !settings.apiKeys;
  if (settings.filesTranslation) new Documents(settings, question);
  written();
  schedule(0);
}

window.addEventListener("hashchange", () => readLink() && fill(readLink()));
if (readLink()) input.value = readLink().q;
else if (!input.value) input.value = recall("sessionStorage", DRAFT) ?? "";
written();
start();
