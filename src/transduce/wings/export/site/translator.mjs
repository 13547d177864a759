/** Translates sentences as transduce's decoding/translator.py does: normalised, capitals rewritten, loops searched again. */

import { OnnxStepper, search } from "./search.mjs";
import { Normalizer, Vocabulary } from "./tokenizer.mjs";

const RETRY_NGRAMS = [3, 2]; // sizes of the n-grams that the second and the third search don't repeat
const MAX_REMEMBERED = 2000; // sentences, so that while somebody types only the changed sentence is searched

export class Translator {
  /** `site` is site.json; `engine` holds {Tensor, encoder, decoder}. */
  constructor(site, engine) {
    this.site = site;
    const inputs = engine.decoder?.inputMetadata ?? [];
    const grow = inputs.filter(({ name }) => /^(?:keys|values)_/.test(name)); // (r, heads, t, channels)
    this.engine = { ...engine, caches: grow.map(({ name, shape }) => [name, shape[1], shape[3]]) };
    this.normalizer = new Normalizer(site.normalizer);
    this.source = new Vocabulary(site.source);
    this.target = site.target ? new Vocabulary(site.target) : this.source;
    this.remembered = new Map();
  }

  /** The best translations [{text, spans, source, sourceSpans, attention}] of a sentence; one, or with `nBest` more. */
  async translate(sentence, direction, { beamSize, aligns = false, nBest = 1 }) {
    const key = JSON.stringify([sentence, direction.source, direction.target, beamSize, aligns, nBest]);
    if (!this.remembered.has(key)) {
      if (this.remembered.size >= MAX_REMEMBERED) this.remembered.clear();
      this.remembered.set(key, await this.found(sentence, direction, { beamSize, aligns, nBest }));
    }
    return this.remembered.get(key);
  }

  async found(sentence, direction, { beamSize, aligns, nBest }) {
    const normal = this.normalizer.normalize(sentence);
    if (!normal.trim()) return [{ text: "", spans: [], sourceSpans: [], attention: [] }];
    const form = this.site.capitals ? this.readable(normal, direction.source) : normal;
    const ids = this.source.encode(form);
    const found = await this.searched([...direction.tags, ...ids], { beamSize, aligns, nBest });
    if (!found.length) throw new Error("The model's probabilities are not numbers: its files are damaged.");
    const share = sentence.length / this.source.decode(ids).text.length; // normalising moves places
    const sourceSpans = this.source.decode(ids).spans.map((span) => span.map((place) => Math.round(share * place)));
    const isUpper = form !== normal && isInCapitals(normal);
    return found.map(({ tokens, rows }) => {
      const { text, spans } = this.target.decode(tokens);
      const attention = rows.map((row) => row.subarray(direction.tags.length));
      return { text: isUpper ? text.toLocaleUpperCase(direction.target) : text, spans, sourceSpans, attention };
    });
  }

  async searched(source, { beamSize, aligns, nBest }) {
    const limit = Math.min(source.length + this.site.maxExtraTokens, this.site.maxTokens);
    const run = async (noRepeat) => {
      const options = { beamSize, lengthPenalty: this.site.lengthPenalty, noRepeat, nBest };
      return search(await OnnxStepper.start(this.engine, source, aligns), limit, options);
    };
    let found = await run(this.site.noRepeat);
    if (!this.site.retryLoops || this.site.noRepeat) return found;
    for (const size of RETRY_NGRAMS) {
      if (!found.length || !isLoop(source, found[0].tokens)) break;
      const other = await run(size);
      if (other.length) found = other;
    }
    return found;
  }

  /** Whether the vocabulary has pieces for a character, also after it is normalised. */
  knows(character) {
    return this.source.knows(character) || [...this.normalizer.normalize(character)].every((each) => this.source.knows(each));
  }

  /** The number of tokens of a text. */
  length(text, language) {
    const normal = this.normalizer.normalize(text);
    return this.source.encode(this.site.capitals ? this.readable(normal, language) : normal).length;
  }

  /** A text in capitals or in title case, with each word in the case with the fewest tokens, if that helps. */
  readable(text, language) {
    if (!isInCapitals(text) && !isTitle(text)) return text;
    const size = (each) => this.source.encode(this.normalizer.normalize(each)).length;
    const words = text.split(" ").map((word, place) => {
      const sizes = formsOf(word, language, place === 0).map((form) => [size(form), form]);
      return sizes.reduce((best, each) => (each[0] < best[0] ? each : best))[1];
    });
    const rewritten = words.join(" ");
    return size(rewritten) < size(text) ? rewritten : text;
  }
}

const MIN_TITLE_WORDS = 3, MIN_LONG_WORD = 4;
const AROUND = "\"'()[]„“”‚‘’«»‹›¿¡.,:;!?…-–—。、";
const LETTERS = /^\p{L}+(?:['’./-]\p{L}+)*$/u;
const count = (text, kind) => text.match(kind)?.length ?? 0;

function isInCapitals(text) {
  return count(text, /\p{Lu}/gu) > 1 && !/[\p{Ll}\p{Lt}\p{Lo}]/u.test(text);
}

function isTitle(text) {
  if (count(text, /\p{Lu}/gu) < MIN_TITLE_WORDS) return false;
  const long = text.split(" ").filter((word) => count(word, /\p{L}/gu) >= MIN_LONG_WORD);
  return long.length >= MIN_TITLE_WORDS && long.every((word) => /^\p{Lu}/u.test(word.replace(/^["'([„“«¿¡]+/u, "")));
}

function formsOf(word, language, isFirst) {
  const letters = [...word];
  const outside = (each) => AROUND.includes(each);
  const begin = letters.findIndex((each) => !outside(each));
  const end = letters.findLastIndex((each) => !outside(each)) + 1;
  if (begin < 0 || !LETTERS.test(letters.slice(begin, end).join(""))) return [word, word, word];
  const whole = word.toLocaleLowerCase(language);
  const lower = [...whole].length === letters.length ? [...whole] : letters.map((each) => (each.toLowerCase().length === each.length ? each.toLowerCase() : each));
  const first = letters.findIndex((each) => /\p{L}/u.test(each));
  const capital = [...letters.slice(0, first + 1), ...lower.slice(first + 1)].join("");
  return isFirst ? [capital, lower.join(""), word] : [lower.join(""), capital, word];
}

/** The longest stretch of tokens that repeats itself: {times, period, length}. A token that occurs twice doesn't count. */
function repetition(tokens) {
  let longest = { times: 1, period: 0, length: 0 };
  const bigrams = tokens.slice(1).map((token, i) => `${tokens[i]} ${token}`);
  if (new Set(bigrams).size === bigrams.length) return longest; // usual
  for (let period = 1; period <= tokens.length >> 1; period++) {
    let run = 0, most = 0;
    for (let i = period; i < tokens.length; i++) {
      run = tokens[i] === tokens[i - period] ? run + 1 : 0;
      most = Math.max(most, run);
    }
    if (most >= period && most + period > longest.length) {
      longest = { times: Math.floor(most / period) + 1, period, length: most + period };
    }
  }
  return longest;
}

/** Whether a translation repeats itself although its source does not; see transduce's decoding/repetition.py. */
export function isLoop(source, target) {
  const found = repetition(target);
  if (found.times < (found.period >= 4 ? 2 : 3)) return false;
  const reason = repetition(source);
  return found.times > reason.times + 1 || found.length > 4 * reason.length || found.period < 0.5 * reason.period;
}
