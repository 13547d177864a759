/** Alternative translations of a passage, best first; the user chooses one by a click. */

import { correctionForm } from "./correction.js";
import { element, make, recallJson, remember } from "./elements.js";
import { figure, label, likelihood } from "./quality.js";
import { ask } from "./service.js";
import { differences } from "./text.js";

const CHOSEN = "transduce.chosen"; // kept in this tab, also when the page is loaded again
const MANY = 3; // with the translation itself, as many as a beam of 4 holds
const EXPLANATION =
  "The words say how likely the model finds a translation compared with the best one. The figures are the model's " +
  "scores: closer to 0 is more likely. Compare only figures of the same list.";

export class Alternatives {
  /** `glossary` returns the terms of the shown translation, if any; `onTaken` is called after a choice. */
  constructor(facing, glossary, onTaken) {
    Object.assign(this, { facing, glossary, onTaken, box: element("alternatives"), button: element("other") });
    facing.chosen = new Map(Object.entries(recallJson(CHOSEN, "sessionStorage") ?? {}));
    this.passage = null;
    this.keeps = false; // whether the server keeps corrections
    this.running = null; // the AbortController of the newest request
    this.button.addEventListener("click", () => {
      if (this.passage) this.close();
      else if (facing.passages.length) this.open(facing.passageOfWord(facing.current));
    });
    this.box.addEventListener("keydown", (event) => this.steer(event));
  }

  /** Ask for the alternatives of a passage and show them below the translation. */
  async open(passage) {
    this.close();
    this.passage = passage;
    this.button.setAttribute("aria-expanded", "true");
    passage.element.classList.add("opened");
    this.box.hidden = false;
    this.box.replaceChildren(make("p", "soft", "Searching …"));
    const { source, target } = this.facing.request;
    const glossary = this.glossary();
    const asked = { q: passage.source, source, target, format: "text", alternatives: MANY, scores: true, glossary };
    const { signal } = (this.running = new AbortController());
    try {
      const answer = await ask("translate", asked, signal);
      if (signal.aborted) return;
      const whole = answer.translatedText === passage.target ? null : this.facing.widen(passage);
      if (whole) await this.open(whole);
      else this.show(passage, answer);
    } catch (error) {
      if (signal.aborted) return;
      this.box.replaceChildren(make("p", "soft", error.message));
      this.box.firstChild.setAttribute("role", "alert");
    }
  }

  close() {
    if (!this.passage) return;
    this.running.abort();
    this.passage.element.classList.remove("opened");
    this.passage = null;
    this.box.hidden = true;
    this.box.replaceChildren();
    this.button.setAttribute("aria-expanded", "false");
  }

  show(passage, answer) {
    const texts = [answer.translatedText, ...(answer.alternatives ?? [])];
    const scores = [answer.scores, ...(answer.alternativeScores ?? [])];
    const found = texts.map((text, i) => ({ text, score: scores[i] }));
    const distinct = found.filter(({ text }, i) => texts.indexOf(text) === i);
    const list = make("ol");
    for (const { text, score } of distinct) list.append(this.item(passage, text, score, scores[0]));
    this.box.replaceChildren(list);
    const quality = label(answer.confidence, answer.flags);
    if (quality) this.box.prepend(make("p", "soft", `The first translation of this sentence: ${quality}`));
    if (distinct.length < 2) this.box.append(make("p", "soft", "The model found no alternatives."));
    else this.box.append(make("p", "soft", EXPLANATION));
    const keep = (text) => this.take(passage, text);
    if (this.keeps) this.box.append(correctionForm(passage, this.facing.request, keep));
    const first = list.querySelector("[aria-pressed=true]") ?? list.querySelector("button");
    if ([document.body, this.facing.output, this.button].includes(document.activeElement))
      first.focus({ preventScroll: true });
  }

  item(passage, text, score, best) {
    const button = make("button", "alternative");
    button.type = "button";
    button.setAttribute("aria-pressed", String(text === passage.shown));
    button.addEventListener("click", () => this.take(passage, text));
    const words = make("span", "words");
    words.dir = "auto";
    words.lang = this.facing.request.target;
    for (const part of differences(text, passage.shown)) words.append(make(part.marked ? "mark" : "span", "", part.text));
    button.append(words);
    if (Number.isFinite(score)) button.append(scoreElement(score, best));
    const item = make("li");
    item.append(button);
    return item;
  }

  take(passage, text) {
    this.close();
    this.facing.prefer(passage, text);
    remember("sessionStorage", CHOSEN, JSON.stringify(Object.fromEntries(this.facing.chosen)));
    this.onTaken(0, true);
    this.facing.output.focus({ preventScroll: true });
  }

  steer(event) {
    const buttons = [...this.box.querySelectorAll("ol button")];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && event.target.tagName === "BUTTON") {
      event.preventDefault();
      buttons.at((buttons.indexOf(document.activeElement) + step) % buttons.length)?.focus();
    } else if (event.key === "Escape") {
      this.close();
      this.facing.output.focus({ preventScroll: true });
    }
  }
}

/** How likely a translation is, in words, as a bar and as its score. */
function scoreElement(score, best) {
  const shown = make("span", "score", `${likelihood(score, best)} (${figure(score)})`);
  const bar = make("meter");
  bar.max = 1;
  bar.value = Math.exp(Math.min(0, score - best));
  bar.setAttribute("aria-hidden", "true");
  shown.prepend(bar);
  return shown;
}
