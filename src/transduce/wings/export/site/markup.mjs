/**
 * Takes tags out of a text, and puts them back into its translation, as transduce's inline/ does, in short.
 *
 * A mark is {kind, begin, end, opening, closing, before, after, order, closeOrder} with places in the masked text: a
 * "pair" of tags around words, a "point" between words, or a "word": a placeholder, which stays in the text. The orders
 * are the numbers of its events, `before` and `after` whether a point needs a blank there.
 */

const BLOCK = /^(?:<|&lt;)\/?(?:p|div|[bht]r|li|[uod]l|d[dt]|t[dh]|table|thead|tbody|caption|h[1-6]|blockquote|section|note)(?![\w.:-])/i;
const BREAK = /^(?:(?:<|&lt;)\/?[bh]r|\\[nr])/i;
const QUOTES = ["\"\"", "''", "()", "[]", "<>", "«»", "»«", "“”", "„“", "‘’", "‚‘"];
const WORD = /[\p{L}\p{N}_][\p{L}\p{N}\p{M}_]*(?:[-'’][\p{L}\p{N}_][\p{L}\p{N}\p{M}_]*)*|\S/gu;
const NEEDS_BLANK = /^[^\s.,:;!?…%)\]}>”’»"'\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}]/u;
const PICTURE = "[\\u2190-\\u21ff\\u2300-\\u27bf\\u2b00-\\u2bff\\u{1f000}-\\u{1faff}]";
const MODIFIER = "[\\ufe0e\\ufe0f\\u20e3\\u{1f3fb}-\\u{1f3ff}\\u{e0020}-\\u{e007f}]";
const MIN_LINK_WEIGHT = 0.4; // a word with a weaker link is tagged only between tagged words
const isAlphanumeric = (text) => /[\p{L}\p{N}]/u.test(text);

/** A pattern for the symbols and the words of a text that the model can't write; null if there are none. */
export function unknownSymbols(text, isKnown) {
  const unknown = [...new Set(text)].filter((each) => !isKnown(each));
  const set = (kinds) => unknown.filter((each) => kinds.test(each)).map((each) => each.replace(/[\\\]^-]/g, "\\$&")).join("");
  const [signs, letters, marks] = [set(/[\p{No}\p{Nl}\p{P}\p{S}]/u), set(/(?![\0-\x7f])[\p{L}\p{N}]/u), set(/\p{M}/u)];
  const patterns = [];
  if (unknown.includes("\u20e3")) patterns.push("[0-9#*]\\ufe0f?\\u20e3");
  if (signs) patterns.push(`(?:(?:[${signs}]|${PICTURE}(?=${MODIFIER}))${MODIFIER}*(?:\\u200d${PICTURE}${MODIFIER}*)*)+`);
  if (letters) patterns.push(`(?<![\\p{L}\\p{N}_])[${letters}][${letters}${marks}]*(?![\\p{L}\\p{N}_])`);
  return patterns.length ? new RegExp(patterns.join("|"), "gu") : null;
}

/** The events of a text, {kind, raw, shown, name}; their `raw` joined are the text. */
export function events(text, placeholders, symbols) {
  const found = [], open = [];
  let done = 0;
  const add = (kind, raw, more = {}) => raw && found.push({ kind, raw, ...more });
  const addText = (raw) => {
    let begin = 0;
    for (const match of symbols ? raw.matchAll(symbols) : []) {
      add("text", raw.slice(begin, match.index));
      add("word", match[0]);
      begin = match.index + match[0].length;
    }
    add("text", raw.slice(begin));
  };
  const find = (from) => {
    placeholders.lastIndex = from;
    return placeholders.exec(text);
  };
  for (let match = find(0); match || open.length; ) {
    const { link, address, stress, stressed, slash, name, voice } = match?.groups ?? {};
    const close = open.at(-1)?.close ?? text.length;
    const end = match ? match.index + match[0].length : Infinity;
    if (end > close) {
      const pair = open.pop();
      addText(text.slice(done, close));
      add("close", text.slice(close, pair.end), { name: pair.name });
      done = pair.end;
    } else {
      addText(text.slice(done, match.index));
      done = end;
      const raw = match[0];
      const character = raw[0] === "&" && !name ? entity(raw) : "";
      if (link || stress) {
        const pair = { close: end - (address ?? stressed).length, end, name: String(match.index) };
        open.push(pair);
        done = match.index + (link ?? stress).length;
        add("open", text.slice(match.index, done), { name: pair.name });
      } else if (voice) add("open", raw, { name: "<v" });
      else if (name) {
        const tag = `<${name.split(".")[0]}`;
        if (slash) add("close", raw, { name: tag });
        else if (/\/(?:>|&(?:amp;)?gt;)$/.test(raw)) add("word", raw);
        else add("open", raw, { name: tag });
      } else if (/^(?:['’]|\p{L})$/u.test(character)) add("text", raw, { shown: character });
      else add("word", raw);
    }
    if (match && match.index < done) match = find(done);
  }
  addText(text.slice(done));
  return withoutUnpaired(found);
}

/** Tags without a partner, such as <file> in "Usage: <file>", are placeholders. */
function withoutUnpaired(found) {
  const open = [];
  const paired = new Set();
  found.forEach((event, place) => {
    if (event.kind === "open") open.push(place);
    const partner = event.kind === "close" ? open.findLastIndex((each) => found[each].name === event.name) : -1;
    if (partner < 0) return;
    paired.add(place).add(open[partner]);
    open.length = partner;
  });
  return found.map((event, place) => (event.name?.[0] === "<" && !paired.has(place) ? { kind: "word", raw: event.raw } : event));
}

function entity(raw) {
  const code = /^&#(?:(\d{1,7})|[xX]([0-9a-fA-F]{1,6}));$/.exec(raw);
  if (!code) return { "&apos;": "'", "&rsquo;": "’" }[raw] ?? "";
  const number = code[1] ? Number(code[1]) : parseInt(code[2], 16);
  return number > 0 && number < 0x110000 ? String.fromCodePoint(number) : "";
}

/** The masked text {text, marks} of events. With `tokens`, placeholders become these characters. */
export function mask(found, tokens = "") {
  let text = "";
  const marks = [], open = [], raws = [];
  const shown = (raw) => {
    if (!tokens) return raw;
    if (!raws.includes(raw)) raws.push(raw);
    return tokens[raws.indexOf(raw) % tokens.length];
  };
  for (const [order, { kind, raw, shown: character, name }] of found.entries()) {
    const point = { kind: "point", begin: text.length, end: text.length, opening: raw, order, closeOrder: order };
    if (kind === "text") text += character ?? raw;
    else if (kind === "word") {
      text += shown(raw);
      marks.push({ ...point, kind: "word", end: text.length });
    } else if (kind === "open") {
      open.push({ name, number: marks.length });
      marks.push(point);
    } else {
      const partner = open.findLastIndex((each) => each.name === name);
      if (partner < 0) {
        marks.push(point);
        continue;
      }
      const { number } = open[partner];
      open.length = partner;
      const mark = marks[number];
      const inner = marks.slice(number + 1);
      const words = inner.filter((each) => each.kind === "word");
      const outside = words.reduceRight((rest, each) => rest.slice(0, each.begin - mark.begin) + rest.slice(each.end - mark.begin), text.slice(mark.begin));
      const content = text.slice(mark.begin);
      const isOne = words.length && inner.length === words.length && content === content.trim() && !content.includes("\n");
      if (!content || (isOne && !isAlphanumeric(outside))) {
        // A pair without words of its own is one placeholder.
        const whole = weave(text, inner.flatMap(patchesOf), mark.begin);
        const kind = words.length ? "word" : "point";
        marks.splice(number, Infinity, { ...mark, kind, end: text.length, opening: mark.opening + whole + raw, closeOrder: order });
      } else marks[number] = { ...mark, kind: "pair", end: text.length, closing: raw, closeOrder: order };
    }
  }
  return { text, marks };
}

/** The patches {begin, end, raw, order} that restore a mark. */
function patchesOf(mark) {
  if (mark.kind !== "pair") return [{ ...mark, raw: mark.opening }];
  const { begin, end, order, closeOrder } = mark;
  return [{ begin, end: begin, raw: mark.opening, order }, { begin: end, end, raw: mark.closing, order: closeOrder }];
}

/** Apply patches, in order, to text[begin:end]. */
function weave(text, patches, begin = 0, end = text.length) {
  let written = "", done = begin;
  for (const patch of patches) {
    written += text.slice(done, Math.max(done, patch.begin));
    if (patch.before && /\S$/u.test(written)) written += " ";
    written += patch.raw;
    done = Math.max(done, patch.end);
    if (patch.after && NEEDS_BLANK.test(text.slice(done))) written += " ";
  }
  return written + text.slice(done, Math.max(done, end));
}

const inOrder = (patches) => patches.sort((one, other) => one.order - other.order);

/** The original of a masked text. */
export function original({ text, marks }) {
  return weave(text, inOrder(marks.flatMap(patchesOf)));
}

/**
 * Cut a masked text at the spans of sentences and at the tags of blocks. Returns {gaps, parts}: texts around the parts,
 * with the tags that stand there, and a masked text for each part.
 */
export function cut({ text, marks }, sentences) {
  const edges = marks.filter((mark) => (mark.kind === "word" ? BREAK : BLOCK).test(mark.opening)).flatMap(({ begin, end }) => [begin, end]);
  const spans = [];
  for (const [begin, end] of sentences) {
    const places = [begin, ...edges.filter((edge) => begin < edge && edge < end).sort((a, b) => a - b), end];
    for (let i = 1; i < places.length; i++) {
      const part = text.slice(places[i - 1], places[i]);
      const first = places[i - 1] + part.length - part.trimStart().length;
      const last = first + part.trim().length;
      const isInWord = spans.length && marks.some((mark) => mark.kind === "word" && mark.begin < first && mark.end > spans.at(-1)[1]);
      if (isInWord) spans.at(-1)[1] = last;
      else if (last > first) spans.push([first, last]);
    }
  }
  const inside = spans.map(() => []), gaps = [...spans, null].map(() => []);
  const moved = (mark, by) => ({ ...mark, begin: mark.begin - by, end: mark.end - by });
  for (const mark of marks) {
    const place = spans.findIndex(([begin, end]) => begin <= mark.begin && mark.end <= end && mark.begin < mark.end);
    if (place >= 0 && !(mark.kind === "pair" && mark.begin === spans[place][0] && mark.end === spans[place][1])) {
      inside[place].push(moved(mark, spans[place][0]));
      continue;
    }
    for (const patch of patchesOf(mark)) {
      const within = spans.findIndex(([begin, end]) => begin < patch.begin && patch.begin < end);
      if (within >= 0) inside[within].push(moved({ ...patch, kind: "point", opening: patch.raw, closeOrder: patch.order }, spans[within][0]));
      else gaps[spans.filter(([, end]) => end <= patch.begin).length].push(patch);
    }
  }
  const borders = [0, ...spans.flat(), text.length];
  return {
    gaps: gaps.map((patches, i) => weave(text, inOrder(patches), borders[2 * i], borders[2 * i + 1])),
    parts: spans.map(([begin, end], i) => ({ text: text.slice(begin, end), marks: inOrder(inside[i]) })),
  };
}

/** Whether a masked text has words beside its placeholders. */
export function hasWords({ text, marks }) {
  const words = marks.filter((mark) => mark.kind === "word");
  return /\p{L}/u.test(words.reduceRight((rest, { begin, end }) => rest.slice(0, begin) + rest.slice(end), text));
}

/** The masked text without its placeholders, for models that don't copy them: they become points. */
export function withoutWords({ text, marks }) {
  let kept = "", done = 0;
  const shifts = [], points = [];
  for (const mark of joined(text, marks.filter((each) => each.kind === "word"))) {
    let { begin, end, opening } = mark;
    if (text[end] && QUOTES.includes(text[begin - 1] + text[end])) {
      opening = text[--begin] + opening + text[end++];
    }
    const [left, right] = [text[begin - 1] ?? "", text[end] ?? ""];
    const [before, after] = [left, right].map((each) => /^(?:$|[\s.,:;!?…])/u.test(each));
    if (/\s/u.test(left) && !isAlphanumeric(right)) begin--;
    else if (begin === 0 && /\s/u.test(right)) end++;
    begin = Math.max(begin, done);
    kept += text.slice(done, begin);
    done = end;
    shifts.push([begin, end, end - begin]);
    points.push({ ...mark, kind: "point", begin: kept.length, end: kept.length, opening, before, after });
  }
  const moved = (place) => shifts.reduce((sum, [begin, end, by]) => sum - (place >= end ? by : Math.max(0, place - begin)), place);
  const others = marks.filter((mark) => mark.kind !== "word").map((mark) => ({ ...mark, begin: moved(mark.begin), end: moved(mark.end) }));
  return { text: kept + text.slice(done), marks: inOrder([...others, ...points]) };
}

/** Placeholders with nothing but signs between them are one. */
function joined(text, words) {
  const found = [];
  for (const mark of words) {
    const last = found.at(-1);
    const gap = last ? text.slice(last.end, mark.begin) : " ";
    if (/[\p{L}\p{N}\s]/u.test(gap)) found.push(mark);
    else found[found.length - 1] = { ...last, end: mark.end, opening: last.opening + gap + mark.opening, closeOrder: mark.closeOrder };
  }
  return found;
}

const occurrences = (word, text) => {
  const [left, right] = [/^[\p{L}\p{N}_]/u.test(word) ? "(?<![\\p{L}\\p{N}_])" : "", /[\p{L}\p{N}_]$/u.test(word) ? "(?![\\p{L}\\p{N}_])" : ""];
  const literal = word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
  return [...text.matchAll(new RegExp(left + literal + right, "gu"))].map(({ index }) => index);
};

/** Whether a translation has each placeholder as often as the source. */
export function copied({ text, marks }, translation) {
  return marks.filter(({ kind }) => kind === "word").every(({ begin, end }) => {
    const word = text.slice(begin, end);
    const places = occurrences(word, text);
    return places.includes(begin) && places.length === occurrences(word, translation).length;
  });
}

/** For each word of the translation, the word of the source that it attends to most: [{target, source, weight}]. */
export function links(source, sourceSpans, target, targetSpans, attention) {
  const words = (text) => [...text.matchAll(WORD)].map(({ index, 0: word }) => [index, index + word.length]);
  const touch = (one, other) => one[0] < other[1] && other[0] < one[1];
  const sources = words(source);
  const pieces = sources.map((word) => sourceSpans.flatMap((span, i) => (touch(span, word) ? [i] : [])));
  return words(target).flatMap((word) => {
    const rows = targetSpans.flatMap((span, i) => (touch(span, word) ? [attention[i]] : []));
    if (!rows.length || !sources.length) return [];
    const weights = pieces.map((its) => rows.reduce((sum, row) => sum + its.reduce((part, i) => part + row[i], 0), 0) / rows.length);
    const weight = Math.max(...weights);
    return [{ target: word, source: sources[weights.indexOf(weight)], weight }];
  });
}

/** The translation with the tags and placeholders of a masked text. `copied` must be true. */
export function restore({ text, marks }, translation, linked) {
  const words = marks.filter((mark) => mark.kind === "word").map((mark) => {
    const word = text.slice(mark.begin, mark.end);
    const number = occurrences(word, text).indexOf(mark.begin);
    const begin = occurrences(word, translation)[number];
    return { begin, end: begin + word.length, raw: mark.opening, source: [mark.begin, mark.end] };
  });
  const copies = words.map(({ begin, end, source }) => ({ target: [begin, end], source, weight: 2 }));
  const all = [...linked.filter(({ source }) => !words.some((word) => word.source[0] < source[1] && source[0] < word.source[1])), ...copies];
  const placing = new Placing(text, translation, all.sort((a, b) => a.target[0] - b.target[0]));
  const tags = placing.place(marks.filter((mark) => mark.kind !== "word"), [0, translation.length]);
  const outside = tags.map((patch) => {
    const word = words.find(({ begin, end }) => begin < patch.begin && patch.begin < end);
    const place = word ? (2 * patch.begin < word.begin + word.end ? word.begin : word.end) : patch.begin;
    return { ...patch, begin: place, end: place };
  });
  const before = (patch) => outside.filter(({ begin }) => begin <= patch.begin).length;
  const patches = [...outside];
  words.sort((a, b) => b.begin - a.begin).forEach((patch) => patches.splice(before(patch), 0, patch));
  return weave(translation, patches);
}

class Placing {
  constructor(source, target, linked) {
    Object.assign(this, { source, target, linked });
    const found = [...target.matchAll(WORD)].filter(({ 0: word }) => isAlphanumeric(word));
    this.begins = found.length ? found.map(({ index }) => index) : [0];
    this.ends = found.length ? found.map(({ index, 0: word }) => index + word.length) : [target.length];
  }

  /** The patches of marks within a span of the translation, properly nested. */
  place(marks, [first, last]) {
    let free = first;
    const placed = [];
    for (let i = 0; i < marks.length; i++) {
      const mark = marks[i];
      if (mark.kind !== "pair") {
        const at = Math.min(Math.max(this.point(mark), first), last);
        placed.push({ begin: at, end: at, patches: [{ ...mark, begin: at, end: at, raw: mark.opening }], isPoint: true });
        continue;
      }
      const inner = [];
      while (marks[i + 1]?.order < mark.closeOrder) inner.push(marks[++i]);
      placed.push({ mark, inner, wanted: this.span(mark) });
    }
    const pairs = placed.filter(({ mark }) => mark).sort((a, b) => a.wanted[0] - b.wanted[0]);
    for (const pair of pairs) {
      let [begin, end] = [Math.max(pair.wanted[0], free), Math.min(pair.wanted[1], last)];
      if (begin >= end) {
        const word = this.begins.findIndex((each) => each >= free);
        [begin, end] = word >= 0 && this.ends[word] <= last ? [this.begins[word], this.ends[word]] : [last, last];
      }
      free = end;
      const inner = this.place(pair.inner, [begin, end]);
      const patches = [{ begin, end: begin, raw: pair.mark.opening }, ...inner, { begin: end, end, raw: pair.mark.closing }];
      Object.assign(pair, { begin, end, patches });
    }
    for (const point of placed.filter(({ isPoint }) => isPoint)) {
      const around = pairs.find(({ begin, end }) => begin < point.begin && point.begin < end);
      if (!around) continue;
      point.begin = point.begin - around.begin < around.end - point.begin ? around.begin : around.end;
      Object.assign(point.patches[0], { begin: point.begin, end: point.begin });
    }
    const orderOf = ({ mark, patches }) => (mark ?? patches[0]).order;
    return placed.sort((a, b) => a.begin - b.begin || a.end - b.end || orderOf(a) - orderOf(b)).flatMap(({ patches }) => patches);
  }

  /** The span of the translation whose links to the words of a pair weigh most; links to other words count against it. */
  span(mark) {
    const inside = this.linked.map(({ source }) => source[0] < mark.end && mark.begin < source[1]);
    let best = 0, run = 0, begin = 0, span = null;
    this.linked.forEach(({ target, weight }, i) => {
      if (run <= 0) [run, begin] = [0, target[0]];
      run += inside[i] ? weight - MIN_LINK_WEIGHT : -weight;
      if (run > best) [best, span] = [run, [begin, target[1]]];
    });
    if (!span && inside.includes(true)) {
      const strongest = this.linked.filter((_, i) => inside[i]).reduce((one, other) => (other.weight > one.weight ? other : one));
      span = strongest.target;
    }
    if (!span || !isAlphanumeric(this.target.slice(...span))) span = this.inProportion(mark);
    const isStop = (character) => character && ".,:;!?…。，：；！？".includes(character);
    const takesStop = isStop(this.source[mark.end - 1]) && isStop(this.target[span[1]]);
    return [span[0], span[1] + (takesStop ? 1 : 0)];
  }

  inProportion(mark) {
    const begin = this.near(mark.begin, this.begins);
    const end = this.near(mark.end, this.ends);
    return [begin, begin < end ? end : this.ends.find((each) => each > begin) ?? this.target.length];
  }

  point(mark) {
    if (mark.begin === 0) return 0;
    if (mark.begin === this.source.length) return this.target.length;
    const strongest = new Map();
    for (const link of this.linked) {
      const key = link.source[0];
      if (!(strongest.get(key)?.weight >= link.weight)) strongest.set(key, link);
    }
    const sorted = [...strongest.values()].sort((a, b) => a.source[0] - b.source[0]);
    const behind = sorted.findLast(({ source }) => source[1] <= mark.begin);
    const ahead = sorted.find(({ source }) => source[0] >= mark.begin);
    if (behind && !(ahead && mark.before)) return behind.target[1];
    return ahead ? ahead.target[0] : this.near(mark.begin, this.ends);
  }

  /** The edge nearest to the place in the translation with the same share of its length. */
  near(place, edges) {
    const wanted = (place * this.target.length) / Math.max(1, this.source.length);
    return edges.reduce((one, other) => (Math.abs(other - wanted) < Math.abs(one - wanted) ? other : one));
  }
}
