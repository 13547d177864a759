/** What the server says of a translation's quality, in words: its confidence, its score and its flags. */

import { element, make } from "./elements.js";

const LEVELS = [
  [0.65, "Better than usual"],
  [0.35, "May need changes"],
  [0, "Probably needs changes"],
];
const FLAGS = {
  loop: ["repeats itself", "It repeats itself, or replaces one that did. Look for repeated or missing words."],
  detached: ["may be unrelated", "The translation may have little to do with the text. Compare every sentence."],
  empty: ["not translated", "The model translates a sentence to nothing. The sentence was copied."],
  untranslated: ["copied", "The translation is a copy of the text. It may not be translated."],
  term: ["lacks a term", "A term of the glossary does not fit into the translation. Insert it by hand."],
  cut: ["cut off", "The translation reached the length limit. Its end is missing."],
  placeholders: ["tags differ", "A tag or placeholder is missing, repeated or invented."],
  guessed: ["a tag may be misplaced", "The position of a tag or placeholder is a guess."],
  numbers: ["numbers differ", "The translation has other numbers than the text."],
  split: ["translated in parts", "A sentence was too long and was translated in parts. Check where the parts meet."],
  long: ["partly untranslated", "A part of the text was too long and was not translated."],
};
const LIKELIHOODS = [
  [0.8, "about as likely"],
  [0.4, "less likely"],
  [0, "much less likely"],
];

/** A short label such as "Better than usual (78 %)", with the first flag if there is one; "" if nothing is known. */
export function label(confidence, flags = []) {
  const [first, ...others] = flags.map((flag) => FLAGS[flag]?.[0] ?? flag);
  const figure = known(confidence) ? ` (${percent(confidence)})` : "";
  if (!first) return known(confidence) ? level(LEVELS, confidence) + figure : "";
  return `Check: ${first}${others.length ? ` and ${others.length} more` : ""}${figure}`;
}

/** Show the quality of a translation, or nothing. */
export function showQuality({ confidence, flags = [], scores } = {}) {
  element("quality").hidden = !label(confidence, flags);
  element("quality").classList.toggle("flagged", flags.length > 0);
  element("quality-label").textContent = label(confidence, flags);
  const sentences = flags.map((flag) => FLAGS[flag]?.[1] ?? `The server marks the translation as “${flag}”.`);
  if (known(confidence))
    sentences.push(
      `${percent(confidence)} is the estimated probability that this translation is better than the usual ones of ` +
        "this model; 50 % is average. Of several sentences, the worst counts. The estimate overlooks errors: read " +
        "names, numbers and negations yourself.",
    );
  if (Number.isFinite(scores))
    sentences.push(`The score, ${figure(scores)}, is the model's own measure: closer to 0 is more probable.`);
  element("quality-note").replaceChildren(...sentences.map((text) => make("p", "", text)));
}

/** How likely a translation is compared with the best one, in words. */
export function likelihood(score, best) {
  return score >= best ? "best" : level(LIKELIHOODS, Math.exp(score - best));
}

export const figure = (score) => score.toFixed(2).replace("-", "−");

const known = (confidence) => Number.isFinite(confidence);
const percent = (share) => `${Math.round(100 * share)} %`;
const level = (levels, value) => levels.find(([least]) => value >= least)[1];
