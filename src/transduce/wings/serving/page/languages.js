/** The languages of the texts: what the server offers, what the user chose, what the server detected. */

import { element, recallJson, remember } from "./elements.js";

const AUTO = "auto";
const REMEMBERED = "transduce.languages";

export class Languages {
  /** `known`: [{code, name, targets}]; `preferred`: {source: {code}, target: {code}}; `onChange` is called after a choice. */
  constructor(known, preferred, onChange) {
    Object.assign(this, { known, onChange, detected: null });
    this.sources = known.filter((language) => language.targets.some((code) => code !== language.code));
    this.source = element("source-language");
    this.target = element("target-language");
    const before = recallJson(REMEMBERED) ?? {};
    this.source.replaceChildren(
      new Option("Detect language", AUTO),
      ...this.sources.map(({ name, code }) => new Option(name, code)),
    );
    pick(this.source, [before.source, preferred?.source?.code, AUTO]);
    this.fillTargets([before.target, preferred?.target?.code]);
    this.source.addEventListener("change", () => this.changed());
    this.target.addEventListener("change", () => this.changed());
  }

  changed(target = this.target.value) {
    this.detected = null;
    this.fillTargets([target, this.target.value]);
    remember("localStorage", REMEMBERED, JSON.stringify({ source: this.source.value, target: this.target.value }));
    this.onChange();
  }

  /** Choose these languages, as far as the server offers them. */
  choose({ source, target }) {
    pick(this.source, [source, this.source.value]);
    this.changed(target);
  }

  /** Offer the languages that the source can be translated into, and select the first of `wished` among them. */
  fillTargets(wished) {
    const from = this.source.value;
    const possible = this.sources
      .filter(({ code }) => from === AUTO || code === from)
      .flatMap(({ code, targets }) => targets.filter((target) => from === AUTO || target !== code));
    const offered = this.known.filter(({ code }) => possible.includes(code));
    const usual = possible.find((code) => code !== this.sources[0].code); // not the first source language
    this.target.replaceChildren(...offered.map(({ name, code }) => new Option(name, code)));
    pick(this.target, [...wished, usual, offered[0]?.code]);
    this.showDetected();
  }

  /** Show the language that the server detected in an "auto" text: {language, confidence}, or nothing. */
  detect(found) {
    this.detected = this.source.value === AUTO && found && found.language !== "und" ? found : null;
    this.showDetected();
  }

  showDetected() {
    const name = this.name(this.detected?.language);
    this.source.options[0].textContent = this.detected ? `${name} (auto)` : "Detect language";
    this.source.title = this.detected ? `${name}, ${Math.round(this.detected.confidence)} % sure` : "";
    element("swap").disabled = !this.swapped;
  }

  name(code) {
    return this.known.find((language) => language.code === code)?.name ?? code;
  }

  /** The codes for a request to the server; the source may be "auto". */
  get codes() {
    return { source: this.source.value, target: this.target.value };
  }

  /** The languages of the two texts; the source is "" if it is not known. */
  get ofTexts() {
    const source = this.source.value === AUTO ? (this.detected?.language ?? "") : this.source.value;
    return { source, target: this.target.value };
  }

  /** The languages swapped; null if the server can't translate in that direction. */
  get swapped() {
    const { source, target } = this.ofTexts;
    const back = this.sources.find(({ code }) => code === target);
    return back?.targets.includes(source) ? { source: target, target: source } : null;
  }

  swap() {
    if (this.swapped) this.choose(this.swapped);
  }
}

function pick(select, wished) {
  const offered = [...select.options].map(({ value }) => value);
  select.value = wished.find((code) => offered.includes(code)) ?? "";
}
