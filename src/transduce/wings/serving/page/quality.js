/** What the server says of a translation's quality, in words: its confidence, its score and its flags. */

import { element, make } from "./elements.js";
import { ask } from "./service.js";

const LEVELS = [
  [0.65, "Better than usual"],
  [0.35, "May need changes"],
  [0, "Probably needs changes"],
];
const DOUBTFUL = 0.35;
const PAUSE = 1000; // milliseconds without a new translation
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

/** Show the quality of a translation and of its doubtful passages, or nothing. */
export function showQuality({ confidence, flags = [], scores } = {}, passages = []) {
  const whole = label(confidence, flags);
  element("quality").hidden = !whole;
  element("quality").classList.toggle("flagged", flags.length > 0);
  const doubts = passages.flatMap(({ doubt }, i) => (doubt ? [`Sentence ${i + 1}: ${doubt}`] : []));
  const one = passages.length > 1 ? `One of ${passages.length} sentences: ` : "";
  const many = doubts.length > 1 && `Check the ${doubts.length} marked sentences`;
  element("quality-label").textContent = many || doubts[0] || one + whole;
  const told = flags.map((flag) => FLAGS[flag]?.[1] ?? `The server marks the translation as “${flag}”.`);
  const sentences = [...doubts, ...told];
  if (known(confidence))
    sentences.push(
      `${percent(confidence)} is the estimated probability that ${one ? "the worst sentence" : "this translation"} is ` +
        "better than the usual ones of this model; 50 % is average. It overlooks errors: check names, numbers and " +
        "negations.",
    );
  if (Number.isFinite(scores))
    sentences.push(`The score, ${figure(scores)}, is the model's own measure: closer to 0 is more probable.`);
  element("quality-note").replaceChildren(...sentences.map((text) => make("p", "", text)));
}

let asking; // the AbortController of the newest request

/** Ask which passages of a doubtful translation are doubtful, after a pause; mark them. */
export function findDoubtful(answer, facing) {
  asking?.abort();
  const { signal } = (asking = new AbortController());
  const { passages, request } = facing;
  if (passages.length < 2 || !isDoubtful(answer.confidence, answer.flags)) return;
  setTimeout(async () => {
    if (signal.aborted) return;
    const q = passages.map(({ source }) => source);
    const found = await ask("translate", { ...request, q, scores: true }, signal).catch(() => {});
    if (!found || signal.aborted) return;
    passages.forEach((passage, i) => {
      const own = [found.confidence[i], found.flags[i]];
      if (found.translatedText[i] === passage.target && isDoubtful(...own)) passage.doubt = label(...own);
      facing.mark(passage);
    });
    if (facing.text === answer.translatedText) showQuality(answer, passages);
  }, PAUSE);
}

const isDoubtful = (confidence, flags = []) => flags.length > 0 || (known(confidence) && confidence < DOUBTFUL);

/** How likely a translation is compared with the best one, in words. */
export function likelihood(score, best) {
  return score >= best ? "best" : level(LIKELIHOODS, Math.exp(score - best));
}

export const figure = (score) => score.toFixed(2).replace("-", "−");

const known = (confidence) => Number.isFinite(confidence);
const percent = (share) => `${Math.round(100 * share)} %`;
const level = (levels, value) => levels.find(([least]) => value >= least)[1];
