/** Translates whole texts: split into sentences, each sentence translated, the gaps between them kept. */

import { copied, cut, events, hasWords, links, mask, original, restore, unknownSymbols, withoutWords } from "./markup.mjs";
import { pattern } from "./tokenizer.mjs";

// As in transduce's inline/segments.py.
const PARAGRAPH_END = /[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+/gu;
const BULLET = /(?:\s*(?:[-*+•‣–—·]|\p{Nd}{1,3}\)|[A-Za-z]\))|(\s*\p{Nd}{1,3})\.)\s+(?=\S)/uy;
const CLAUSE_END = /(?<=[;:,)\]–؛،۔])\s+|(?<=[—、，；：。។៖၊။፣።।])\s*|(?<!\s)\s+(?=[(\[–—])/gu;
const FAR = 40; // characters that are read before a full stop
const CATEGORIES = ["Ll", "Lu", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "Mn", "Mc", "Me", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf",
  "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co", "Cs"].map((name) => [name, RegExp(`\\p{${name}}`, "u")]);

const category = (character) => CATEGORIES.find(([, kind]) => kind.test(character))?.[0] ?? "Cn";

/** Finds the sentences of texts in a language; `rules` are the full stops of site.json. */
export class Sentences {
  constructor(rules, language) {
    this.language = language.split("-")[0];
    this.kinds = new Map(Object.entries(rules.kinds[language] ?? {}));
    this.marks = rules.marks;
    [this.stop, this.wordPart] = [pattern(rules.stop), pattern(rules.wordPart)];
    [this.behind, this.roles] = [rules.behind, rules.roles].map(({ source }) => new RegExp(`^(?:${source})`, "u"));
    this.segmenter = newSegmenter(language);
  }

  /** The spans of a text's sentences, without the blanks around them. */
  spans(text) {
    const found = [];
    let place = text.startsWith("\ufeff") ? 1 : 0;
    for (const gap of [...text.matchAll(PARAGRAPH_END), null]) {
      const end = gap ? gap.index : text.length;
      BULLET.lastIndex = place;
      const bullet = BULLET.exec(text.slice(0, end));
      // An ordinal is part of the sentence: "3. října".
      if (bullet && !(bullet[1] && this.role(text.slice(place, end), bullet[1].length) === ",")) place += bullet[0].length;
      for (const piece of this.cut(text.slice(place, end))) {
        const content = piece.trim();
        const begin = place + piece.indexOf(content);
        if (content) found.push([begin, begin + content.length]);
        place += piece.length;
      }
      place = gap ? gap.index + gap[0].length : end;
    }
    return found;
  }

  /** Cut a paragraph into sentences that keep their blanks. Full stops with known roles are marked for the segmenter. */
  cut(paragraph) {
    const marked = paragraph.replace(this.stop, (...found) => this.role(paragraph, found.find(Number.isInteger)));
    const pieces = [];
    for (const { segment, index } of this.segmenter.segment(marked)) {
      const piece = paragraph.slice(index, index + segment.length);
      if (/["'”’»)\]]\s*$/u.test(pieces.at(-1)) && /^\p{Ll}/u.test(piece)) pieces.push(pieces.pop() + piece); // "Why?" he asked.
      else pieces.push(piece);
    }
    return pieces;
  }

  /** The mark of a full stop: "," if it ends no sentence, "?" if it ends one, "." if the segmenter decides. */
  role(text, place) {
    const behind = this.behind.exec(text.slice(place + 1));
    if (!behind) return text.startsWith(" §", place + 1) ? "," : !text[place + 1] || /\s/.test(text[place + 1]) ? "." : " ";
    const words = ["", "", ...(text.slice(Math.max(0, place - FAR), place).match(this.wordPart) ?? [])];
    const joined = words.at(-2).includes(".") ? [-4, -3, -2].map((first) => words.slice(first).join("")) : []; // "z." and "B"
    const word = joined.find((name) => this.kinds.has(name.toLowerCase())) ?? words.at(-1);
    const described = (each) =>
      `${this.kinds.get(each) ?? ""}${this.kinds.get(each.toLowerCase()) ?? ""}${[...each].slice(0, 2).map(category).join("")}:${each}`;
    const fields = [described(word), described(behind[1]), behind[2], described(words.at(-2)), words.at(-3) ?? "", this.language, category(text)];
    const line = this.roles.exec(fields.join("\t"));
    const number = line ? line.slice(1).findIndex((group) => group !== undefined) : -1;
    return number < 0 ? "." : this.marks[number];
  }
}

function newSegmenter(language) {
  try {
    return new Intl.Segmenter(language, { granularity: "sentence" });
  } catch {
    return new Intl.Segmenter(undefined, { granularity: "sentence" }); // the browser doesn't know the language
  }
}

/** Cut a span into parts of at most `limit` tokens, at the clause end or the blank nearest to the middle. */
export function shortened(text, [begin, end], limit, length) {
  const sentence = text.slice(begin, end);
  if (end - begin < 2 || length(sentence) <= limit) return [[begin, end]];
  const middle = sentence.length / 2;
  let cut = null;
  for (const [kind, distance] of [[CLAUSE_END, 0.8 * middle], [/\s+/gu, middle]]) {
    const cuts = [...sentence.matchAll(kind)].map(({ index, 0: blank }) => [index, index + blank.length]);
    const inner = cuts.filter(([first, last]) => first > 0 && last < sentence.length);
    const far = (each) => Math.abs(each[0] - middle);
    const nearest = inner.reduce((one, other) => (one && far(one) <= far(other) ? one : other), null);
    if (nearest && far(nearest) < distance) {
      cut = nearest;
      break;
    }
  }
  if (!cut) {
    let half = sentence.length >> 1;
    while (half > 1 && /[\p{M}\p{Sk}\u200d\udc00-\udfff]/u.test(sentence[half])) half--;
    cut = [half, half];
  }
  const parts = [[begin, begin + cut[0]], [begin + cut[1], end]];
  return parts.flatMap((part) => shortened(text, part, limit, length));
}

/**
 * Translates a text; yields the translation so far {text, share} after each sentence.
 * `options` are those of Translator.translate.
 */
export async function* translations(translator, sentences, text, direction, options) {
  const { maxSentenceTokens: limit, placeholders, placeholderTokens } = translator.site;
  const length = (part) => translator.length(part, direction.source);
  const symbols = unknownSymbols(text, (each) => translator.knows(each));
  const masked = mask(events(text, pattern(placeholders), symbols), placeholderTokens);
  const spans = sentences.spans(masked.text).flatMap((span) => shortened(masked.text, span, limit, length));
  const { gaps, parts } = cut(masked, spans);
  let written = gaps[0];
  for (const [number, part] of parts.entries()) {
    written += (await translated(translator, part, direction, options)) + gaps[number + 1];
    yield { text: written, share: (number + 1) / parts.length };
  }
  if (!parts.length) yield { text: written, share: 1 };
}

/** The translation of a masked sentence with its tags and placeholders; without words, a copy of the sentence. */
async function translated(translator, part, direction, { beamSize }) {
  if (!hasWords(part)) return original(part);
  const hasPlaceholders = part.marks.some(({ kind }) => kind === "word");
  // The translation of a text without placeholders can't lose them.
  for (const form of hasPlaceholders ? [part, withoutWords(part)] : [part]) {
    const options = { beamSize, aligns: form.marks.length > 0, nBest: form.marks.length ? beamSize : 1 };
    for (const found of await translator.translate(form.text, direction, options)) {
      if (!found.text.trim() || !copied(form, found.text)) continue;
      if (!form.marks.length) return found.text;
      const linked = links(form.text, found.sourceSpans, found.text, found.spans, found.attention);
      return restore(form, found.text, linked);
    }
  }
  return original(part);
}
