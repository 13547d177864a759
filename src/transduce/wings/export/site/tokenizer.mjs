/** SentencePiece's BPE, unigram and character models, and the normalisation of sources, as transduce applies them. */

export const PAD = 0, BOS = 1, EOS = 2, UNK = 3; // as in transduce's config/schema.py
const SPACE = "\u2581";
const NORMAL = 1, CONTROL = 3, USER_DEFINED = 4, BYTE = 6; // types of pieces in SentencePiece's files
const UNKNOWN_PENALTY = 10; // SentencePiece's score of an unknown character: this much below the lowest score
const MAX_CACHED_WORDS = 100_000;
const utf8 = new TextEncoder();
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A regular expression of site.json. */
export const pattern = ({ source, flags }) => new RegExp(source, flags);

/** Normalises sources; `rules` are those of site.json. */
export class Normalizer {
  constructor(rules) {
    this.folded = new Map(Object.entries(rules.folded));
    this.meaningless = pattern(rules.meaningless);
    this.withWideSigns = pattern(rules.withWideSigns);
    this.wideSigns = new Set(rules.wideSigns);
  }

  normalize(text) {
    let form = text.toWellFormed().normalize("NFC");
    const keepsWide = text.search(this.withWideSigns) >= 0;
    form = form.replace(this.meaningless, "");
    const fold = (each) => (keepsWide && this.wideSigns.has(each) ? each : this.folded.get(each) ?? each);
    form = Array.from(form, fold).join("").normalize("NFC");
    return form.replace(/^ +| +$/g, "").replace(/ {2,}/g, " ");
  }
}

/** A vocabulary: {kind: "bpe", "unigram" or "char", pieces, scores, types}. */
export class Vocabulary {
  constructor({ kind, pieces, scores, types }) {
    Object.assign(this, { kind, pieces, scores, types });
    this.ids = new Map(); // pieces that texts contain
    this.bytes = new Array(256);
    let lowest = Infinity, highest = -Infinity;
    pieces.forEach((piece, id) => {
      if (types[id] === BYTE) this.bytes[parseInt(piece.slice(3, 5), 16)] = id;
      if (types[id] !== NORMAL && types[id] !== USER_DEFINED) return;
      this.ids.set(piece, id);
      if (types[id] === NORMAL) [lowest, highest] = [Math.min(lowest, scores[id]), Math.max(highest, scores[id])];
    });
    this.unknownScore = Math.fround(lowest - UNKNOWN_PENALTY);
    this.highest = highest;
    this.longest = Math.max(...pieces.map((piece) => piece.length));
    this.cached = new Map();
  }

  /** Whether a character has a piece of its own, so that it is not spelled in bytes. */
  knows(character) {
    return this.ids.has(character);
  }

  /** The ids of a normalised text; none for an empty text. */
  encode(text) {
    if (!text) return [];
    if (!text.includes(SPACE)) return this.part(SPACE + text.replaceAll(" ", SPACE));
    const [first, ...rest] = ` ${text}`.split(SPACE).map((part) => this.part(part.replaceAll(" ", SPACE)));
    const literal = this.spelled(SPACE);
    return rest.reduce((ids, part) => [...ids, ...literal, ...part], first);
  }

  part(text) {
    if (this.kind === "unigram") return this.unigram(text);
    return (text.match(/\u2581?[^\u2581]*/g) ?? []).filter(Boolean).flatMap((word) => this.word(word));
  }

  /** No piece crosses a space, so that each word can be encoded by itself. */
  word(word) {
    let ids = this.cached.get(word);
    if (!ids) {
      const symbols = this.kind === "bpe" ? this.merged([...word]) : [...word];
      ids = symbols.flatMap((symbol) => this.idsOf(symbol));
      if (this.cached.size >= MAX_CACHED_WORDS) this.cached.clear();
      this.cached.set(word, ids);
    }
    return ids;
  }

  /** Merge the neighbours with the highest score, of equal ones the first, until no two make a piece. */
  merged(symbols) {
    const scoreAt = (i) => this.scores[this.ids.get(symbols[i] + symbols[i + 1])] ?? -Infinity;
    const scores = symbols.slice(1).map((_, i) => scoreAt(i));
    for (;;) {
      let best = -1;
      for (let i = 0; i < scores.length; i++) if (scores[i] > (scores[best] ?? -Infinity)) best = i;
      if (best < 0) return symbols;
      symbols.splice(best, 2, symbols[best] + symbols[best + 1]);
      scores.splice(best, 1);
      if (best > 0) scores[best - 1] = scoreAt(best - 1);
      if (best < scores.length) scores[best] = scoreAt(best);
    }
  }

  /** The best path through the pieces, in SentencePiece's order and with its 32-bit numbers. */
  unigram(text) {
    const characters = [...text];
    const best = characters.map(() => null);
    best.push(null);
    best[0] = { score: 0 };
    const reach = (end, begin, symbol, score) => {
      const sum = Math.fround(Math.fround(score) + best[begin].score);
      if (!best[end] || sum > best[end].score) best[end] = { score: sum, begin, symbol };
    };
    for (let begin = 0; begin < characters.length; begin++) {
      let symbol = "";
      for (let end = begin; end < characters.length && symbol.length < this.longest; end++) {
        symbol += characters[end];
        const id = this.ids.get(symbol);
        if (id === undefined) {
          if (end === begin) reach(end + 1, begin, symbol, this.unknownScore);
        } else if (this.types[id] === USER_DEFINED) {
          reach(end + 1, begin, symbol, utf8.encode(symbol).length * this.highest - 0.1);
        } else {
          reach(end + 1, begin, symbol, this.scores[id]);
        }
      }
    }
    const symbols = [];
    for (let end = characters.length; end > 0; end = best[end].begin) symbols.push(best[end].symbol);
    return symbols.reverse().flatMap((symbol) => this.idsOf(symbol));
  }

  idsOf(symbol) {
    return this.ids.has(symbol) ? [this.ids.get(symbol)] : this.spelled(symbol);
  }

  spelled(symbol) {
    return Array.from(utf8.encode(symbol), (byte) => this.bytes[byte]);
  }

  /** The text of ids, and the span [begin, end] of each id in it, in UTF-16 units. */
  decode(ids) {
    let text = "", bytes = [];
    const spans = [], waiting = []; // waiting: places in `spans` of the bytes
    const flush = () => {
      for (const [character, count] of charactersOf(bytes)) {
        const begin = text.length;
        text += character;
        // The last byte of a character has its span.
        waiting.splice(0, count).forEach((place, i) => (spans[place] = [begin, i === count - 1 ? text.length : begin]));
      }
      bytes = [];
    };
    let isFirst = true; // SentencePiece wrote a space before the text
    ids.forEach((id, place) => {
      if (this.types[id] === BYTE) {
        waiting.push(place);
        bytes.push(parseInt(this.pieces[id].slice(3, 5), 16));
      } else {
        flush();
        const isText = id > UNK && this.types[id] !== CONTROL;
        const piece = isText ? this.pieces[id].replaceAll(SPACE, " ") : "";
        const begin = text.length;
        text += isFirst ? piece.replace(/^ /, "") : piece;
        spans[place] = [begin, text.length];
        if (!isText) return;
      }
      isFirst = false;
    });
    flush();
    return { text: text.replaceAll("\n", " "), spans };
  }
}

/** The characters of UTF-8 bytes with their numbers of bytes; a byte that is none becomes U+FFFD. */
function* charactersOf(bytes) {
  for (let i = 0; i < bytes.length; ) {
    const count = bytes[i] < 0x80 ? 1 : bytes[i] < 0xe0 ? 2 : bytes[i] < 0xf0 ? 3 : 4;
    let character = "\ufffd";
    try {
      character = strict.decode(Uint8Array.from(bytes.slice(i, i + count)));
    } catch {
      yield [character, 1];
      i++;
      continue;
    }
    yield [character, count];
    i += count;
  }
}
