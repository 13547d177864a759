/**
 * The source text and its translation side by side, with highlights and lines for aligned words.
 *
 * The source is a plain text area. Behind it lies a mirror with the same text in the same font, which shows highlights.
 * The text area and the mirror grow with the text; the field around them scrolls, so that they stay aligned.
 */

import { make } from "./elements.js";
import { passages, readAlignment } from "./text.js";

const THREAD = "http://www.w3.org/2000/svg";

export class Facing {
  /**
   * `onPassage` is called with the passage that the user chose by a click or by Enter; `onWord` with a text for screen
   * readers: the word that the arrow keys have reached, and the source words aligned to it.
   */
  constructor({ book, input, mirror, output, threads, onPassage, onWord }) {
    Object.assign(this, { book, input, mirror, output, threads, onPassage, onWord });
    this.passages = []; // made by `passage`
    this.words = { source: [], target: [] }; // elements
    this.links = [];
    this.bound = []; // the result of `partners` for the highlighted word
    this.current = -1; // the word of the translation that the arrow keys have reached
    this.chosen = new Map(); // by passage: the alternative that the user chose
    this.listen();
  }

  listen() {
    this.input.addEventListener("pointermove", (event) => this.light("source", this.sourceWordAt(event)));
    this.input.addEventListener("pointerleave", () => this.dark());
    this.input.addEventListener("click", (event) => this.light("source", this.sourceWordAt(event)));
    this.input.addEventListener("keyup", (event) => {
      if (/^(Arrow|Home|End|Page)/.test(event.key)) this.light("source", this.sourceWordOfCaret());
    });
    this.input.addEventListener("blur", () => this.dark());
    this.output.addEventListener("pointerover", (event) => this.light("target", this.targetWordOf(event.target)));
    this.output.addEventListener("pointerleave", () => this.dark());
    this.output.addEventListener("click", (event) => this.choose(event.target));
    this.output.addEventListener("keydown", (event) => this.steer(event));
    this.output.addEventListener("blur", () => this.dark());
    for (const field of [this.input, this.output]) field.parentElement.addEventListener("scroll", () => this.spin());
    window.addEventListener("resize", () => this.spin());
  }

  /** Copy the text of the text area to the mirror, without highlights: the links belong to another text. */
  mirrorText() {
    this.mirror.textContent = `${this.input.value}\n`; // an empty last line has no height unless something follows
    this.words.source = [];
    this.dark();
  }

  /** Show a translation; words of `source` can be highlighted only if the text area still holds it. */
  show(source, target, alignment, request) {
    this.request = request;
    const read = readAlignment(alignment, source, target);
    [this.links, this.target, this.current] = [read.links, target, -1];
    this.words = { source: [], target: new Array(read.target.length) };
    const words = read.target.map((span, word) => ({ span, word }));
    this.passages = passages(source, target, request.source, request.target).map((found) =>
      passage(found, source, target, words),
    );
    const lines = {};
    for (const each of this.passages) (lines[each.line] ??= []).push(each);
    for (const line of Object.values(lines))
      if (line.length > 1 && this.chosen.has(this.key(whole(line)))) this.join(line); // an alternative of the line
    if (alignment.length && source === this.input.value) this.showSource(source, read.source);
    this.showTarget();
  }

  /** Show nothing. */
  clear() {
    [this.passages, this.links, this.target] = [[], [], ""];
    this.words = { source: [], target: [] };
    this.output.replaceChildren();
    this.dark();
  }

  /** The translation as shown, with the chosen alternatives. */
  get text() {
    return this.output.textContent;
  }

  /** Show `text` in the place of a passage's translation, now and whenever the same translation returns. */
  prefer(passage, text) {
    if (text === passage.target) this.chosen.delete(this.key(passage));
    else this.chosen.set(this.key(passage), text);
    this.showTarget();
  }

  /**
   * Join the passages of a line, if the server splits the line into other sentences. Returns the joined passage, or
   * null if the line is one passage already or has an alternative that the user chose.
   */
  widen(passage) {
    const line = this.passages.filter((each) => each.line === passage.line);
    if (line.length < 2 || line.some((each) => this.chosen.has(this.key(each)))) return null;
    const joined = this.join(line);
    this.showTarget();
    return joined;
  }

  /** Replace the passages of a line by one passage, and return it. */
  join(line) {
    const joined = whole(line);
    this.passages.splice(this.passages.indexOf(line[0]), line.length, joined);
    return joined;
  }

  key(passage) {
    return JSON.stringify([this.request, passage.source, passage.target]);
  }

  showSource(source, spans) {
    const parts = [];
    let done = 0;
    this.words.source = spans.map(([begin, end]) => {
      const word = make("span", "word", source.slice(begin, end));
      parts.push(source.slice(done, begin), word);
      done = end;
      return word;
    });
    this.mirror.replaceChildren(...parts, `${source.slice(done)}\n`);
  }

  showTarget() {
    this.dark();
    const parts = [];
    let done = 0;
    for (const passage of this.passages) {
      const [begin, end] = passage.span;
      parts.push(this.target.slice(done, begin), this.passageElement(passage));
      done = end;
    }
    this.output.replaceChildren(...parts, this.target.slice(done));
  }

  passageElement(passage) {
    const chosen = this.chosen.get(this.key(passage));
    passage.shown = chosen ?? passage.target;
    passage.element = make("span", chosen === undefined ? "passage" : "passage preferred");
    this.mark(passage);
    for (const { word } of passage.words) this.words.target[word] = undefined;
    let done = 0;
    for (const { span, word } of chosen === undefined ? passage.words : []) {
      const [begin, end] = [span[0] - passage.span[0], span[1] - passage.span[0]];
      const made = make("span", "word", passage.shown.slice(begin, end));
      passage.element.append(passage.shown.slice(done, begin), made);
      this.words.target[word] = made;
      done = end;
    }
    passage.element.append(passage.shown.slice(done));
    return passage.element;
  }

  /** Mark a doubtful passage, unless the user chose its translation. */
  mark({ element, doubt, shown, target }) {
    element.title = shown === target ? (doubt ?? "") : "";
    element.classList.toggle("doubtful", element.title !== "");
  }

  sourceWordAt({ clientX, clientY }) {
    const word = document.elementsFromPoint(clientX, clientY).find((found) => found.parentElement === this.mirror);
    return this.words.source.indexOf(word);
  }

  sourceWordOfCaret() {
    const caret = this.input.selectionEnd;
    let place = 0;
    for (const part of this.mirror.childNodes) {
      place += part.textContent.length;
      if (caret <= place && part.nodeType === Node.ELEMENT_NODE) return this.words.source.indexOf(part);
      if (caret < place) return -1;
    }
    return -1;
  }

  targetWordOf(node) {
    return this.words.target.indexOf(node);
  }

  /** Highlight a word and the words aligned to it on the other side; -1 removes the highlights. */
  light(side, index) {
    const word = this.words[side][index];
    if (word && word === this.lit) return;
    this.dark();
    this.lit = word;
    this.bound = word ? this.partners(side, index) : [];
    for (const { from, to } of this.bound) for (const each of [from, to]) each.classList.add("lit");
    this.spin();
  }

  /** The links of a word as pairs of elements: {from, to, weight}. */
  partners(side, index) {
    return this.links
      .filter((link) => link[side] === index)
      .map(({ source, target, weight }) => ({ from: this.words.source[source], to: this.words.target[target], weight }))
      .filter(({ from, to }) => from && to);
  }

  dark() {
    this.lit = null;
    this.bound = [];
    for (const word of this.book.querySelectorAll(".lit")) word.classList.remove("lit");
    this.spin();
  }

  /** Draw the lines between the highlighted words at their current positions. */
  spin() {
    this.threads.replaceChildren(...this.bound.flatMap(({ from, to, weight }) => this.thread(from, to, weight)));
  }

  /** A line from one word to the other, in a list; none if a word is scrolled out of sight. */
  thread(from, to, weight) {
    const [a, b] = [inSight(from, this.book), inSight(to, this.book)];
    if (!a || !b) return [];
    const stacked = this.output.getBoundingClientRect().left < this.input.getBoundingClientRect().right;
    const line = document.createElementNS(THREAD, "path");
    line.setAttribute("d", stacked ? falling(a, b) : hanging(a, b));
    line.setAttribute("stroke-opacity", String(0.25 + 0.65 * Math.min(1, Math.max(0, weight))));
    return [line];
  }

  choose(node) {
    if (String(getSelection())) return; // the user is selecting text
    const passage = this.passages.find((each) => each.element.contains(node));
    if (passage) this.onPassage(passage);
  }

  steer(event) {
    const rightToLeft = getComputedStyle(this.output).direction === "rtl";
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key] * (rightToLeft ? -1 : 1);
    if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    if (step) {
      event.preventDefault();
      const places = [...this.words.target.keys()].filter((word) => this.words.target[word]);
      const next = places.indexOf(this.current) + step;
      this.current = places[this.current < 0 && step < 0 ? places.length - 1 : Math.max(0, next)] ?? this.current;
      this.light("target", this.current);
      this.words.target[this.current]?.scrollIntoView({ block: "nearest" });
      const from = this.bound.map((each) => each.from.textContent).join(", ");
      this.onWord([this.words.target[this.current]?.textContent, from].filter(Boolean).join(": "));
    } else if (event.key === "Enter" && this.passages.length) {
      event.preventDefault();
      this.onPassage(this.passageOfWord(this.current));
    } else if (event.key === "Escape") this.dark();
  }

  /** The passage that holds a word of the translation, by default the first passage. */
  passageOfWord(word) {
    return this.passages.find((passage) => passage.words.some((each) => each.word === word)) ?? this.passages[0];
  }
}

/**
 * A passage with its texts; `span` and `words` are positions in the translation, `begin` and `end` in the source. Its
 * words, and those before it, leave `words`.
 */
function passage(found, source, target, words) {
  const next = words.findIndex(({ span }) => span[1] > found.target[1]);
  const passed = words.splice(0, next < 0 ? words.length : next);
  return {
    line: found.line,
    whole: { source, target },
    source: source.slice(...found.source),
    target: target.slice(...found.target),
    begin: found.source[0],
    end: found.source[1],
    span: found.target,
    words: passed.filter(({ span }) => span[0] >= found.target[0]),
  };
}

/** One passage of all passages of a line. */
function whole(line) {
  const [first, last] = [line[0], line.at(-1)];
  return {
    ...first,
    source: first.whole.source.slice(first.begin, last.end),
    target: first.whole.target.slice(first.span[0], last.span[1]),
    span: [first.span[0], last.span[1]],
    end: last.end,
    words: line.flatMap((each) => each.words),
  };
}

/** The position of a word in `book`: its middle, top and bottom; null if it is scrolled out of its field. */
function inSight(word, book) {
  const box = word.getClientRects()[0];
  const field = word.closest(".field").getBoundingClientRect();
  const origin = book.getBoundingClientRect();
  if (!box || box.bottom > field.bottom + 2 || box.top < field.top - 2) return null;
  return { x: box.left + box.width / 2 - origin.left, top: box.top - origin.top, bottom: box.bottom - origin.top };
}

/** The path from the bottom of a word to the bottom of another, for texts side by side. */
function hanging(a, b) {
  const sag = Math.max(a.bottom, b.bottom) + Math.min(60, 12 + Math.abs(b.x - a.x) / 14);
  const pull = (b.x - a.x) / 4;
  return `M${a.x} ${a.bottom}C${a.x + pull} ${sag} ${b.x - pull} ${sag} ${b.x} ${b.bottom}`;
}

/** The path from the bottom of a word to the top of another, for a translation below its source. */
function falling(a, b) {
  const middle = (a.bottom + b.top) / 2;
  return `M${a.x} ${a.bottom}C${a.x} ${middle} ${b.x} ${middle} ${b.x} ${b.top}`;
}
