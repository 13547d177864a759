/** The glossary: one term on each line. It is kept on this device, with one text for each target language. */

import { element, recallJson, remember } from "./elements.js";

const GLOSSARIES = "transduce.glossaries";
const STATES = { kept: "as written", inflected: "in another form", missed: "missing" };

export class Glossary {
  /** `onChange` is called when the terms have changed. */
  constructor(onChange) {
    Object.assign(this, { onChange, texts: {}, terms: {} });
    this.field = element("glossary-text");
    this.field.addEventListener("input", () => this.written());
    this.field.addEventListener("change", () => this.check(""));
    window.addEventListener("storage", ({ key }) => key === GLOSSARIES && this.fill()); // another tab
  }

  /** Show the glossary of the target language. */
  show(languages) {
    const { target } = languages.codes;
    if (target === this.target) return;
    const name = languages.name(target);
    Object.assign(this, { target, name });
    this.field.disabled = false;
    this.field.placeholder = `Terms and their translations into ${name}`;
    this.fill();
    this.tell(true);
  }

  fill() {
    this.texts = { ...this.texts, ...recallJson(GLOSSARIES) };
    this.field.value = String(this.texts[this.target] ?? "");
    this.read();
  }

  written() {
    this.texts = { ...this.texts, ...recallJson(GLOSSARIES), [this.target]: this.field.value };
    this.read();
    this.tell(remember("localStorage", GLOSSARIES, JSON.stringify(this.texts)));
  }

  read() {
    const before = JSON.stringify(this.terms);
    const { terms, wrong } = readTerms(this.field.value);
    Object.assign(this, { terms, wrong });
    const count = Object.keys(terms).length;
    element("glossary-count").textContent = count ? `(${count === 1 ? "1 term" : `${count} terms`})` : "";
    this.check("");
    if (JSON.stringify(terms) !== before) this.onChange();
  }

  tell(isKept) {
    element("glossary-kept").textContent = isKept
      ? `It is kept on this device, for translations into ${this.name}.`
      : "This browser doesn't store it: it is lost when you close the page.";
  }

  /** Show what is wrong: a sentence of the server, or a line without a translation that the user isn't writing. */
  check(sentence) {
    const isWriting = document.activeElement === this.field;
    const line = isWriting ? this.field.value.slice(0, this.field.selectionEnd).split("\n").length : 0;
    const first = this.wrong.find((number) => number !== line);
    const shown = sentence || (first ? `Line ${first} is not used: write a term, = and its translation.` : "");
    element("glossary-error").textContent = shown;
    this.field.setAttribute("aria-invalid", String(Boolean(shown)));
  }

  /** Show a sentence of the server if it is about the glossary; returns whether it is. */
  refuse(sentence) {
    const isAbout = Object.keys(this.terms).length > 0 && /\b(glossary|terms?)\b/i.test(sentence);
    if (isAbout) this.check(sentence);
    return isAbout;
  }

  /** Show what became of the terms in a translation. */
  showUsed(terms = []) {
    const texts = new Set(terms.map(({ source, target, state }) => `${source} = ${target} (${STATES[state]})`));
    element("glossary-used").textContent = texts.size ? `In this translation: ${[...texts].join(", ")}.` : "";
  }

  /** Open the glossary and go to its field. */
  open() {
    element("glossary").open = true;
    this.field.focus();
  }
}

/** Read "dog = Hund" or, as in a file, with a TAB. Returns the terms, and the numbers of lines that are none. */
export function readTerms(text) {
  const [terms, wrong] = [[], []];
  text.split("\n").forEach((line, i) => {
    const found = /^([^\t]*)\t([^\t]*)/.exec(line) ?? /^([^=]*)=(.*)/.exec(line) ?? [];
    const [, source, target] = found.map((part) => part.trim());
    if (source && target) terms.push([source, target]);
    else if (line.trim()) wrong.push(i + 1);
  });
  return { terms: Object.fromEntries(terms), wrong };
}
