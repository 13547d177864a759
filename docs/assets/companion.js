// The page of one sentence: draws its attention (drawing.js), and runs a beam search on stored probabilities.

"use strict";

(() => {
  const END = 2; // the id of the end of a sentence
  const signed = (value, digits) => value.toFixed(digits).replace("-", "−");
  const read = (id) => JSON.parse(document.getElementById(id)?.textContent ?? "null");

  // ---- the search, as src/transduce/decoding/beam.py runs it for one sentence and one translation -----------------

  const penalty = (length, alpha) => ((5 + length) / 6) ** alpha;

  const begin = (size, alpha) =>
    ({ size, alpha, step: 0, open: [{ ids: [], logProb: 0 }], candidates: [], complete: [], done: false });

  // One step: extends every open hypothesis, and keeps the best.
  function advance(data, state) {
    const { size, alpha } = state;
    const step = state.step + 1;
    const candidates = state.open.flatMap(({ ids, logProb }) => data.continuations[ids.join(" ")]
      .filter(([token]) => step <= data.limit || token === END)
      .map(([token, value]) => ({ ids: [...ids, token], logProb: logProb + value })))
      .sort((one, other) => other.logProb - one.logProb).slice(0, 2 * size);
    const isEnded = ({ ids }) => ids.at(-1) === END;
    const ended = candidates.slice(0, size).filter(isEnded)
      .map((hypothesis) => ({ ...hypothesis, score: hypothesis.logProb / penalty(step, alpha) }));
    const complete = [...state.complete, ...ended].sort((one, other) => other.score - one.score);
    const open = candidates.filter((hypothesis) => !isEnded(hypothesis)).slice(0, size);
    candidates.forEach((hypothesis, place) => {
      const isKept = open.includes(hypothesis);
      hypothesis.fate = isKept ? "open" : isEnded(hypothesis) && place < size ? "complete" : "pruned";
    });
    const attainable = open.length ? open[0].logProb / penalty(data.limit + 1, alpha) : -Infinity;
    const done = size === 1 ? complete.length > 0
      : step > data.limit || (complete.length > 0 && complete[0].score >= attainable);
    return { size, alpha, step, open, candidates, complete, done, attainable };
  }

  function finish(data, state) {
    while (!state.done) state = advance(data, state);
    return state;
  }

  // ---- its page ---------------------------------------------------------------------------------------------------

  function make(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes))
      if (typeof value === "function") element.addEventListener(key, value);
      else element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  function choice(label, values, value, onChange) {
    const select = make("select", { change: () => onChange(+select.value) },
      ...values.map((each) => make("option", { value: each }, `${each}`)));
    select.value = value;
    return make("label", {}, `${label} `, select);
  }

  function table(caption, heads, rows) {
    const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)));
    const body = rows.map(({ kind, cells }) => make("tr", { class: kind }, ...cells.map((text) => make("td", {}, text))));
    return make("table", { class: "hypotheses" }, make("caption", {}, caption), make("thead", {}, head),
      make("tbody", {}, ...body));
  }

  function drawSearch(element, data) {
    const text = (ids) => ids.map((id) => data.pieces[id]).join("").replaceAll("\u2581", " ").trim() || "(nothing)";
    const told = make("p", { "aria-live": "polite" });
    const shown = make("div");
    let state = begin(2, 0.6);
    const restart = (changes) => { state = begin(changes.size ?? state.size, changes.alpha ?? state.alpha); render(); };
    const button = (label, onClick) => make("button", { type: "button", class: "md-button", click: onClick }, label);
    const next = button("One step", () => { state = advance(data, state); render(); });
    const end = button("To the end", () => { state = finish(data, state); render(); });
    const again = button("Begin again", () => restart({}));

    function render() {
      next.disabled = end.disabled = state.done;
      const [best] = state.complete;
      if (state.step === 0) told.textContent = "The search begins with one hypothesis without tokens.";
      else if (!state.done) told.textContent = `Step ${state.step}: ${state.open.length} hypotheses are open.`;
      else told.textContent = `The search ends after step ${state.step}. It chooses “${text(best.ids.slice(0, -1))}” ` +
        (state.size === 1 ? "A greedy search ends with its first complete hypothesis."
          : `No open hypothesis can beat it: the best one reaches at most ${signed(state.attainable, 3)}.`);
      const parts = [];
      if (state.candidates.length) parts.push(table(`The ${state.candidates.length} best continuations of step ${state.step}`,
        ["hypothesis", "log P", "state"], state.candidates.map(({ ids, logProb, fate }) =>
          ({ kind: fate, cells: [text(ids), signed(logProb, 3), fate] }))));
      if (state.complete.length) parts.push(table("Complete hypotheses", ["translation", "log P", "tokens", "score"],
        state.complete.map(({ ids, logProb, score }, place) => ({ kind: place ? "pruned" : "complete",
          cells: [text(ids.slice(0, -1)), signed(logProb, 3), `${ids.length}`, signed(score, 3)] }))));
      shown.replaceChildren(...parts);
    }

    element.replaceChildren(
      make("div", { class: "controls" },
        choice("Beam size", data.sizes, state.size, (size) => restart({ size })),
        choice("Length penalty α", data.alphas, state.alpha, (alpha) => restart({ alpha })), next, end, again),
      told, shown);
    render();
  }

  const search = read("search-data");
  if (search) drawSearch(document.getElementById("search"), search);
  const picture = read("drawing-data");
  if (picture) {
    transduce.draw(document.getElementById("drawing"), picture);
    // The button of the site changes the colours, too.
    new MutationObserver(transduce.repaint).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
  }
  globalThis.companion = { begin, finish };
})();
