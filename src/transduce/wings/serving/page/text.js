/**
 * Functions on texts: their sentences, their aligned words, and the differences between two texts.
 *
 * The server counts code points, JavaScript counts UTF-16 units; a span here is [begin, end] in UTF-16 units.
 */

const LARGEST = 1 << 21; // of the words of two texts, multiplied: longer texts are not compared

/** The number of code points in `text`, which the server's limit counts. */
export function countCharacters(text) {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

/** The UTF-16 position where each code point of `text` begins, and finally where the text ends. */
function places(text) {
  const found = [];
  let place = 0;
  for (const character of text) {
    found.push(place);
    place += character.length;
  }
  found.push(place);
  return found;
}

/**
 * The words of both texts and the links between them, from the server's alignment.
 * Returns {source: [span], target: [span], links: [{source: index, target: index, weight}]}; a span that is empty,
 * lies outside of its text or overlaps another span is left out with its links.
 */
export function readAlignment(alignment, source, target) {
  const read = (side, text) => {
    const place = places(text);
    const spans = alignment.map((link) => [place[link[side][0]], place[link[side][1]]]);
    const words = distinct(spans);
    const index = new Map(words.map((word, i) => [String(word), i]));
    return { words, indices: spans.map((span) => index.get(String(span))) };
  };
  const [from, to] = [read("source", source), read("target", target)];
  const links = alignment
    .map((link, i) => ({ source: from.indices[i], target: to.indices[i], weight: link.weight }))
    .filter((link) => link.source !== undefined && link.target !== undefined);
  return { source: from.words, target: to.words, links };
}

function distinct(spans) {
  const words = [];
  for (const span of spans.filter(([begin, end]) => begin < end).sort((a, b) => a[0] - b[0] || a[1] - b[1])) {
    if (!words.length || span[0] >= words.at(-1)[1]) words.push(span);
  }
  return words;
}

/**
 * Pairs of passages of a text and its translation: of sentences, if a line has equally many on both sides, else of the
 * whole line; one pair if the texts differ in lines. Returns [{line, source: span, target: span}] without blank lines.
 */
export function passages(source, target, sourceLanguage, targetLanguage) {
  const [from, to] = [lines(source), lines(target)];
  if (from.length !== to.length) return [{ line: 0, source: [0, source.length], target: [0, target.length] }];
  return from.flatMap((span, line) => {
    const here = sentences(source, span, sourceLanguage);
    const there = sentences(target, to[line], targetLanguage);
    if (!here.length || !there.length) return [];
    if (here.length === there.length) return here.map((each, k) => ({ line, source: each, target: there[k] }));
    return [{ line, source: [here[0][0], here.at(-1)[1]], target: [there[0][0], there.at(-1)[1]] }];
  });
}

function lines(text) {
  let begin = 0;
  return text.split("\n").map((line) => {
    const span = [begin, begin + line.length];
    begin = span[1] + 1;
    return span;
  });
}

/** The sentences of the line [begin, end] of `text` without surrounding blanks; none if the line is blank. */
function sentences(text, [begin, end], language) {
  const line = text.slice(begin, end);
  const found = [];
  for (const { segment, index } of segmenter(language)?.segment(line) ?? [{ segment: line, index: 0 }]) {
    const words = segment.trim();
    const at = begin + index + segment.indexOf(words);
    if (words) found.push([at, at + words.length]);
  }
  return found;
}

const segmenters = new Map(); // by language; they are slow to make

function segmenter(language) {
  if (!Intl.Segmenter) return null;
  if (!segmenters.has(language)) segmenters.set(language, newSegmenter(language));
  return segmenters.get(language);
}

function newSegmenter(language) {
  try {
    return new Intl.Segmenter(language, { granularity: "sentence" });
  } catch {
    return new Intl.Segmenter(undefined, { granularity: "sentence" }); // the browser doesn't know the language
  }
}

/** `text` in parts; words outside of the longest common subsequence with the words of `other` are marked. */
export function differences(text, other) {
  const cut = (whole) => whole.match(/\s+|[\p{L}\p{M}\p{N}'’-]+|[^]/gu) ?? [];
  const [a, b] = [cut(text), cut(other)];
  if (a.length * b.length > LARGEST) return [{ text, marked: false }];
  const common = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--)
    for (let k = b.length - 1; k >= 0; k--)
      common[i][k] = a[i] === b[k] ? common[i + 1][k + 1] + 1 : Math.max(common[i + 1][k], common[i][k + 1]);
  const parts = [];
  for (let i = 0, k = 0; i < a.length; i++) {
    while (k < b.length && a[i] !== b[k] && common[i][k + 1] > common[i + 1][k]) k++;
    const same = k < b.length && a[i] === b[k];
    if (same) k++;
    const marked = !same && a[i].trim() !== "";
    if (parts.length && parts.at(-1).marked === marked) parts.at(-1).text += a[i];
    else parts.push({ text: a[i], marked });
  }
  return parts;
}
