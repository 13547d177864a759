// Draws a `Picture` of `picture.py` into an HTML element: transduce.draw(element, data).
//
// Four parts: the attention over the source, as bands between the two sentences; the maps of all layers and heads; the
// tree of the beam search; the positional encodings. All texts are inserted as text nodes, and the code uses no inline
// handlers or style attributes. The page can therefore have a strict Content-Security-Policy.

"use strict";

globalThis.transduce = (() => {
  const ONE = 1000; // a weight of 1: weights are integer thousandths
  const SVG = "http://www.w3.org/2000/svg";
  const IN_SVG = ["svg", "g", "path", "text", "rect"];

  // ---- elements ----------------------------------------------------------------------------------------------------

  function make(name, attributes = {}, ...children) {
    const element = IN_SVG.includes(name) ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes))
      if (typeof value === "function") element.addEventListener(key, value);
      else if (value !== undefined) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  const readout = (hint) => make("p", { class: "readout", "aria-live": "polite" }, hint);

  function section(title, note, ...children) {
    const head = [make("h2", {}, title), make("p", { class: "note" }, note)];
    return make("section", {}, ...head, make("figure", {}, ...children));
  }

  const tableOf = (attributes, head, body) =>
    make("table", attributes, make("thead", {}, head), make("tbody", {}, ...body));

  // Calls `render` when the element gets a width, and whenever the width changes.
  function atEveryWidth(element, render) {
    let drawn = 0;
    new ResizeObserver(() => {
      if (element.clientWidth === drawn) return;
      drawn = element.clientWidth;
      render();
    }).observe(element);
  }

  function choice(label, options, onChoose) {
    const select = make("select", { change: () => onChoose(+select.value) });
    select.append(...options.map(([value, text]) => make("option", { value }, text)));
    return make("label", {}, `${label} `, select);
  }

  // Whether a modifier key is held: such key combinations are left to the browser.
  const isHeld = (event) => event.altKey || event.ctrlKey || event.metaKey || event.shiftKey;

  // A roving tabindex: the Tab key stops once for all items. step(key, place) returns the index that a key leads to.
  function rove(container, items, step) {
    let current = 0;
    items.forEach((item, place) => {
      item.setAttribute("tabindex", place === 0 ? 0 : -1);
      item.addEventListener("focus", () => {
        items[current].setAttribute("tabindex", -1);
        items[(current = place)].setAttribute("tabindex", 0);
      });
    });
    container.addEventListener("keydown", (event) => {
      const place = isHeld(event) ? undefined : step(event.key, current);
      if (place === undefined) return;
      event.preventDefault();
      items[Math.min(Math.max(place, 0), items.length - 1)].focus();
    });
  }

  const inLine = (key, place) => ({ ArrowLeft: place - 1, ArrowUp: place - 1, ArrowRight: place + 1,
    ArrowDown: place + 1, Home: 0, End: Infinity })[key];

  const inGrid = (columns) => (key, place) => {
    const first = place - (place % columns);
    return { ArrowLeft: place - 1, ArrowRight: place + 1, ArrowUp: place < columns ? place : place - columns,
      ArrowDown: place + columns, Home: first, End: first + columns - 1 }[key];
  };

  // Paints a canvas now and when the page's colours change: paint(pixels, colour) fills width x height pixels.
  function painted(canvas, width, height, paint) {
    Object.assign(canvas, { width, height });
    canvas.repaint = () => {
      const pen = canvas.getContext("2d");
      const colour = (name) => {
        canvas.style.color = `var(${name})`;
        return getComputedStyle(canvas).color.match(/\d+/g).map(Number);
      };
      const image = pen.createImageData(width, height);
      paint(image.data, colour);
      pen.putImageData(image, 0, 0);
    };
    requestAnimationFrame(canvas.repaint); // after the canvas is in the page
    return canvas;
  }

  const repaint = () => document.querySelectorAll(".transduce canvas").forEach((canvas) => canvas.repaint());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);

  // ---- text and numbers --------------------------------------------------------------------------------------------

  // A piece as text: U+2581 marks a space before the piece; control characters become symbols.
  function shown(piece) {
    const text = piece.replace(/^\u2581+/, (spaces) => "␣".repeat(spaces.length - 1));
    return (text || "␣").replace(/[\u0000-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)));
  }

  // The text of several pieces. Byte pieces such as <0xE2> form characters only when joined.
  const joined = (pieces) => pieces.join("").replace(/(?:<0x[0-9A-F]{2}>)+/g, (run) =>
    new TextDecoder().decode(Uint8Array.from(run.match(/[0-9A-F]{2}(?=>)/g), (byte) => parseInt(byte, 16))));

  const isMark = (text) => /^[↦⏎]$/.test(text);
  const percent = (weight) => Math.round((100 * weight) / ONE);
  const signed = (value, digits) => value.toFixed(digits).replace("-", "−");
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

  // The pieces or, if `whole`, the words that they form.
  function units(pieces, whole) {
    const found = [];
    pieces.forEach((piece, place) => {
      const goesOn = place > 0 && !/^[\u2581↦⏎]/.test(piece);
      if (whole && goesOn) found.at(-1).places.push(place);
      else found.push({ places: [place], joined: goesOn });
    });
    const text = ({ places: [first, ...others] }) =>
      shown(others.length ? joined(pieces.slice(first, others.at(-1) + 1)) : pieces[first]);
    return found.map((unit) => ({ ...unit, text: text(unit) }));
  }

  // Weights of a layer and head (-1: mean of all) between units: summed over a unit's keys, averaged over its queries.
  function between(maps, layer, head, queries, keys) {
    const layers = layer < 0 ? maps.weights : [maps.weights[layer]];
    const picked = layers.flatMap((heads) => (head < 0 ? heads : [heads[head]]));
    const cell = (t, s) => mean(picked.map((map) => map[t][s]));
    return queries.map(({ places }) =>
      keys.map((key) => mean(places.map((t) => key.places.reduce((sum, s) => sum + cell(t, s), 0)))));
  }

  // ---- the ribbon --------------------------------------------------------------------------------------------------

  const isTouch = matchMedia("(pointer: coarse)").matches;
  const ROW = isTouch ? 44 : 26; // pixels for each row when the pieces are in columns: a finger needs 44
  const isRightToLeft = (texts) => /^[^\p{L}]*[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/u.test(texts.join(""));

  // The positions of units on a centred line, and the line's length.
  function lineUp(items, measure, width, gap) {
    let length = 0;
    const places = items.map((item, i) => {
      length += i === 0 || item.joined ? 0 : gap;
      return { begin: length, end: (length += measure(item.text) + 2) };
    });
    const shift = Math.max(0, (width - length) / 2);
    const mirrored = isRightToLeft(items.map((item) => item.text));
    const moved = ({ begin, end }) => ({ begin: shift + begin, end: shift + end });
    const turned = ({ begin, end }) => ({ begin: shift + length - end, end: shift + length - begin });
    return { length, places: places.map(mirrored ? turned : moved) };
  }

  function oneBelowOther(count, height) {
    const row = Math.min(1.5 * ROW, height / count);
    const first = (height - row * count) / 2;
    return [...Array(count).keys()].map((i) => ({ begin: first + row * i + 2, end: first + row * (i + 1) - 2 }));
  }

  function fitted(text, measure, most) {
    const letters = [...text];
    while (letters.length > 1 && measure(`${letters.join("")}…`) > most) letters.pop();
    return measure(text) <= most ? text : `${letters.join("")}…`;
  }

  function drawRibbon(maps) {
    const told = readout("");
    const drawing = make("div", { class: "ribbon" });
    const picked = { layer: -1, head: -1, whole: 0 };
    const pick = (what) => (value) => { picked[what] = value; render(); };
    const numbered = (list) => [[-1, "mean"], ...list.map((_, i) => [i, i + 1])];
    const controls = make("div", { class: "controls" });
    if (maps.weights.length > 1) controls.append(choice("Layer", numbered(maps.weights), pick("layer")));
    if (maps.weights[0].length > 1) controls.append(choice("Head", numbered(maps.weights[0]), pick("head")));
    if ([maps.queries, maps.keys].some((pieces) => units(pieces, true).length < pieces.length))
      controls.append(choice("Show", [[0, "pieces"], [1, "words"]], pick("whole")));
    const pen = document.createElement("canvas").getContext("2d");
    const measure = (text) => pen.measureText(text).width;

    function render() {
      let width = drawing.clientWidth;
      if (!width) return; // hidden
      pen.font = getComputedStyle(drawing).font;
      const sides = [maps.keys, maps.queries].map((pieces) => units(pieces, picked.whole));
      const weights = between(maps, picked.layer, picked.head, sides[1], sides[0]);
      const lined = (gap) => sides.map((items) => lineUp(items, measure, width, gap));
      const lines = [28, 18, 10].map(lined).find((found) => found.every(({ length }) => length <= width));
      const flat = lines !== undefined && !isTouch; // otherwise two columns, at most 640 pixels wide together
      if (!flat) width = Math.min(width, 640);
      const most = width / 2 - 76;
      const widest = sides.map((items) => Math.min(most, Math.max(...items.map((item) => measure(item.text)))));
      const near = flat ? [44, 190] : [widest[0] + 46, width - widest[1] - 46];
      const height = flat ? 234 : ROW * Math.max(...sides.map((items) => items.length));
      const places = flat ? lines.map((line) => line.places)
        : sides.map((items) => oneBelowOther(items.length, height));
      const bands = bandsBetween(weights, places, near, flat);
      const groups = sides.map((items, side) => {
        const fit = items.map((item) => (flat ? item.text : fitted(item.text, measure, most)));
        return labelled(items, fit, side, places[side], near[side], flat, width);
      });
      const svg = make("svg", { width, height },
        make("g", { class: "bands", "aria-hidden": true }, ...bands.map((band) => band.path)),
        ...groups.map((labels, side) => make("g", { role: "listbox", "aria-label": side ? "Translation" : "Source" },
          ...labels.map(({ item }) => item))));
      drawing.replaceChildren(svg);
      const clear = () => {
        svg.classList.remove("lit");
        groups.flat().forEach(({ number }) => number.replaceChildren());
        told.textContent = "Point at a word, or use the arrow keys, to see what it attends to.";
      };
      svg.addEventListener("pointerleave", clear);
      clear();

      const show = (side, i) => {
        const seen = sides[1 - side].map((_, j) => (side ? weights[i][j] : weights[j][i]));
        bands.forEach(({ path, t, s }) => path.classList.toggle("on", (side ? t : s) === i));
        groups.forEach((labels, k) => labels.forEach(({ item, number }, j) => {
          number.textContent = k !== side && percent(seen[j]) >= 1 ? percent(seen[j]) : "";
          item.classList.toggle("on", k === side ? j === i : percent(seen[j]) >= 5);
          item.setAttribute("aria-selected", k === side && j === i);
        }));
        svg.classList.add("lit");
        const best = seen.map((weight, j) => [weight, j]).sort((a, b) => b[0] - a[0]).slice(0, 6);
        const list = best.filter(([weight]) => percent(weight) >= 1)
          .map(([weight, j]) => `${sides[1 - side][j].text} ${percent(weight)} %`);
        const looks = side ? "attends to" : "is attended to by";
        told.textContent = `“${sides[side][i].text}” ${looks} ${list.join(", ") || "nothing"}`;
      };
      groups.forEach((labels, side) => {
        labels.forEach(({ item }, i) =>
          ["pointerenter", "focus", "click"].forEach((event) => item.addEventListener(event, () => show(side, i))));
        rove(labels[0].item.parentNode, labels.map(({ item }) => item), inLine);
      });
    }

    atEveryWidth(drawing, render);
    return section("From the source to the translation",
      "Each band shows how much a piece of the translation attends to a source piece. Wider bands mean more attention.",
      controls, drawing, told);
  }

  // The bands of a query fill its whole width; the bands of a key fill at most its width.
  function bandsBetween(weights, [keys, queries], [above, below], flat) {
    const totals = keys.map((_, s) => weights.reduce((sum, row) => sum + row[s], 0));
    const scales = keys.map(({ begin, end }, s) => (end - begin) / Math.max(ONE, totals[s]));
    const taken = keys.map(({ begin, end }, s) => (begin + end - totals[s] * scales[s]) / 2);
    const at = (along, across) => (flat ? [along, across] : [across, along]).map((x) => x.toFixed(1)).join(" ");
    const middle = (above + below) / 2;
    return weights.flatMap((row, t) => {
      const { begin, end } = queries[t];
      let given = begin;
      return row.map((weight, s) => {
        const [q, k] = [given, taken[s]];
        const [q2, k2] = [(given += ((end - begin) * weight) / ONE), (taken[s] += weight * scales[s])];
        const path = make("path", { "fill-opacity": (0.1 + (0.75 * weight) / ONE).toFixed(3),
          d: `M${at(q, below)}C${at(q, middle)} ${at(k, middle)} ${at(k, above)}` +
            `L${at(k2, above)}C${at(k2, middle)} ${at(q2, middle)} ${at(q2, below)}Z` });
        return { path, t, s, weight };
      }).filter((band) => band.weight >= ONE / 100);
    });
  }

  // The labels of one side, each with space for a percentage.
  function labelled(items, texts, side, places, near, flat, width) {
    return items.map((item, i) => {
      const { begin, end } = places[i];
      const middle = (begin + end) / 2;
      const out = side ? 1 : -1;
      const text = flat ? { x: middle, y: near + (side ? 20 : -10), "text-anchor": "middle" }
        : { x: near + 8 * out, y: middle + 5, "text-anchor": side ? "start" : "end" };
      const number = make("text", { class: "number", ...(flat ? { ...text, y: near + (side ? 38 : -30) }
        : { x: side ? width : 0, y: middle + 5, "text-anchor": side ? "end" : "start" }) });
      const area = flat ? { x: begin, y: side ? near : near - 44, width: end - begin, height: 44 }
        : { x: side ? near : 0, y: begin - 2, width: side ? width - near : near, height: end - begin + 4 };
      const label = texts[i] === item.text ? item.text : `${texts[i]} ${item.text}`; // the visible text, then all of it
      const attributes = { class: isMark(item.text) ? "piece mark" : "piece", role: "option", "aria-label": label };
      return { number, item: make("g", attributes, make("rect", area), make("text", text, texts[i]), number) };
    });
  }

  // ---- all layers and heads ----------------------------------------------------------------------------------------

  const USES = {
    encoder: ["Encoder", "the source attends to itself"],
    decoder: ["Decoder", "the translation attends to its earlier pieces"],
    source: ["Decoder, over the source", "the translation attends to the source"],
  };
  const visible = (weight) => (weight / ONE) ** 0.7; // makes the small weights of long sentences visible

  function thumbnail(weights) {
    const [height, width] = [weights.length, weights[0].length];
    return painted(make("canvas", { "aria-hidden": true }), width, height, (pixels, colour) => {
      const accent = colour("--accent");
      weights.flat().forEach((weight, i) => pixels.set([...accent, 255 * visible(weight)], 4 * i));
    });
  }

  function drawMaps(all) {
    const large = make("div", { class: "large" });
    let pressed = null;
    const panels = all.map((maps) => {
      const heads = maps.weights[0].length;
      const [title, note] = USES[maps.use];
      const buttons = maps.weights.flatMap((layer, l) => layer.map((weights, h) => {
        const name = `${title}, layer ${l + 1}, head ${h + 1}`;
        const open = () => {
          pressed?.setAttribute("aria-pressed", false);
          (pressed = button).setAttribute("aria-pressed", true);
          large.replaceChildren(...enlarged(name, maps, weights));
        };
        const button = make("button", { type: "button", "aria-label": name, title: name, "aria-pressed": false,
          click: () => { open(); large.scrollIntoView({ block: "nearest" }); } }, thumbnail(weights));
        button.open = open;
        return button;
      }));
      const grid = make("div", { class: "grid", role: "group", "aria-label": `${title}: layers by heads` }, ...buttons);
      grid.style.gridTemplateColumns = `repeat(${heads}, minmax(1.5rem, 5rem))`;
      rove(grid, buttons, inGrid(heads));
      return make("div", { class: "panel" }, make("h3", {}, title), make("p", { class: "note" }, note), grid);
    });
    const decided = (weights) => mean(weights.map((row) => Math.max(...row)));
    const choices = all.at(-1).weights.flat().map(decided);
    panels.at(-1).querySelectorAll("button")[choices.indexOf(Math.max(...choices))].open();
    return section("Every layer and head",
      "Each row of maps is a layer, each column a head. In a map, each row is a query and each column a key. " +
        "Choose a map to enlarge it.",
      make("div", { class: "panels" }, ...panels), large);
  }

  function enlarged(name, maps, weights) {
    const told = readout("Point at a cell, or use the arrow keys, to see its weight.");
    const [queries, keys] = [maps.queries.map(shown), maps.keys.map(shown)];
    const cells = [];
    const cellOf = (weight) => {
      const cell = make("td", {}, percent(weight) || "");
      cell.style.setProperty("--weight", visible(weight).toFixed(3));
      cells.push(cell);
      return cell;
    };
    const body = weights.map((row, t) => make("tr", {}, make("th", { scope: "row" }, queries[t]), ...row.map(cellOf)));
    const head = make("tr", {}, make("td"), ...keys.map((key) => make("th", { scope: "col" }, make("span", {}, key))));
    const table = tableOf({ class: "map", role: "grid", "aria-label": name }, head, body);
    let lit = [];
    const show = (event) => {
      const place = cells.indexOf(event.target);
      if (place < 0) return;
      const [t, s] = [Math.floor(place / keys.length), place % keys.length];
      lit.forEach((element) => element.classList.remove("on"));
      lit = [event.target, body[t].firstChild, head.children[s + 1]];
      lit.forEach((element) => element.classList.add("on"));
      told.textContent = `“${queries[t]}” attends to “${keys[s]}”: ${(weights[t][s] / ONE).toFixed(3)}`;
    };
    ["pointerover", "focusin", "click"].forEach((event) => table.addEventListener(event, show));
    rove(table, cells, inGrid(keys.length));
    table.style.setProperty("--keys", keys.length);
    table.classList.toggle("numbers", keys.length <= 22);
    return [make("h3", {}, name), told, make("div", { class: "scroll" }, table)];
  }

  // ---- the search --------------------------------------------------------------------------------------------------

  const FATES = { kept: "kept", complete: "complete", pruned: "pruned", left: "unfinished when the search ended" };

  function drawSearch(search, isCut) {
    const told = readout("Point at a piece, or use the arrow keys, to see its hypothesis.");
    const tree = make("div", { class: "tree" });
    const [winner] = search.complete;

    // The path from the first step to a node: [[step, place], …].
    function lineage(step, place) {
      const path = [];
      for (; step >= 0; place = search.steps[step--][place].parent) path.unshift([step, place]);
      return path;
    }
    const key = (path) => new Set(path.map(([step, place]) => `${step} ${place}`));
    const won = winner ? key(lineage(winner.length - 1, winner.place)) : new Set();
    let light = () => {};

    function render() {
      const across = tree.clientWidth >= 600; // steps from left to right, or downwards on a narrow screen
      const fitting = (tree.clientWidth - 8) / (across ? search.steps.length : search.beam_size);
      const [width, height] = [fitting < (across ? 92 : 72) ? 100 : Math.min(fitting, 112), 46];
      const gap = across ? 20 : 8;
      const at = (step, place) => (across ? [step * width, place * height] : [place * width, step * (height + 14)]);
      const edges = make("svg", { "aria-hidden": true });
      const [nodes, lines] = [new Map(), new Map()];
      const order = [];
      search.steps.forEach((step, n) => step.forEach((node, place) => {
        const [x, y] = at(n, place);
        const text = node.fate === "complete" ? "⏎" : shown(node.piece);
        const id = `${n} ${place}`;
        const kind = `${node.fate}${won.has(id) ? " won" : ""}`;
        const element = make("button", { type: "button", class: `node ${kind}`,
          "aria-label": `step ${n + 1}, rank ${place + 1}: ${text}, ${signed(node.log_prob, 2)}, ${FATES[node.fate]}` },
          make("span", {}, text), make("small", {}, signed(node.log_prob, 2)));
        Object.assign(element.style, { left: `${x}px`, top: `${y}px`, width: `${width - gap}px` });
        ["pointerenter", "focus", "click"].forEach((event) => element.addEventListener(event, () => light(n, place)));
        order.push([n, place]);
        nodes.set(id, element);
        if (node.parent < 0) return;
        const [px, py] = at(n - 1, node.parent);
        const [x1, y1, x2, y2] = across ? [px + width - gap, py + 19, x, y + 19] : [px + 32, py + 38, x + 32, y];
        const bend = across ? `${x1 + 12} ${y1} ${x2 - 12} ${y2}` : `${x1} ${y1 + 12} ${x2} ${y2 - 12}`;
        const line = make("path", { d: `M${x1} ${y1}C${bend} ${x2} ${y2}`, class: kind });
        lines.set(id, line);
        edges.append(line);
      }));
      const most = Math.max(...search.steps.map((step) => step.length));
      const [w, h] = at(search.steps.length, most);
      edges.setAttribute("width", w);
      edges.setAttribute("height", h);
      const inner = make("div", { class: "nodes", role: "group", "aria-label": "Hypotheses by step" });
      inner.append(edges, ...nodes.values());
      Object.assign(inner.style, { width: `${w}px`, height: `${h}px` });
      tree.replaceChildren(inner);
      rove(inner, [...nodes.values()], (pressed, i) => {
        const [n, place] = order[i];
        const [forth, back] = across ? ["ArrowRight", "ArrowLeft"] : ["ArrowDown", "ArrowUp"];
        const [down, up] = across ? ["ArrowDown", "ArrowUp"] : ["ArrowRight", "ArrowLeft"];
        const to = pressed === forth ? [n + 1, search.steps[n + 1]?.findIndex((node) => node.parent === place)]
          : pressed === back ? [n - 1, search.steps[n][place].parent]
          : pressed === down ? [n, place + 1] : pressed === up ? [n, place - 1] : undefined;
        if (!to) return undefined;
        const found = order.findIndex(([step, rank]) => step === to[0] && rank === to[1]);
        return found < 0 ? i : found;
      });
      light = (n, place) => {
        const path = lineage(n, place);
        const lit = key(path);
        nodes.forEach((element, id) => element.classList.toggle("on", lit.has(id)));
        lines.forEach((line, id) => line.classList.toggle("on", lit.has(id)));
        const node = search.steps[n][place];
        const pieces = path.map(([step, rank]) => search.steps[step][rank].piece);
        const text = joined(pieces).replaceAll("\u2581", " ").trim();
        const score = search.complete.find((one) => one.length === n + 1 && one.place === place)?.score;
        told.textContent = `${text} · log-probability ${signed(node.log_prob, 3)} · ` +
          (score === undefined ? FATES[node.fate] : `complete, score ${signed(score, 3)}`);
      };
    }

    atEveryWidth(tree, render);
    const listed = search.complete.slice(0, Math.max(2 * search.beam_size, 5));
    const chosen = make("strong", { class: "tag" }, "chosen");
    const body = listed.map((one, i) =>
      make("tr", { class: i === 0 ? "won" : undefined, pointerenter: () => light(one.length - 1, one.place) },
        make("td", { dir: "auto" }, one.text || "(nothing)", " ", i === 0 ? chosen : ""),
        ...[["log p", signed(one.log_prob, 2)], ["tokens", one.length], ["score", signed(one.score, 3)]]
          .map(([name, text]) => make("td", { class: "figure", "data-name": name }, text))));
    const heads = ["complete hypothesis", "log p", "tokens", "score"].map((text) => make("th", { scope: "col" }, text));
    const table = tableOf({ class: "ranking" }, make("tr", {}, ...heads), body);
    const rest = search.complete.length - listed.length;
    return section("The search",
      `Each step shows the ${2 * search.beam_size} best continuations. It keeps at most ${search.beam_size} ` +
        "(framed). Pruned continuations are faint. The thick line leads to the translation.",
      told, make("div", { class: "scroll" }, tree), table,
      make("p", { class: "note" }, `score = log p / ((5 + tokens) / 6)^${search.length_penalty}` +
        (rest > 0 ? `; ${rest} more complete hypotheses` : "") +
        (isCut ? "; the chosen hypothesis was cut off at the length limit" : "")));
  }

  // ---- positions ---------------------------------------------------------------------------------------------------

  function drawPositions(all) {
    const parts = all.flatMap((positions) => {
      const { values, largest, source, target } = positions;
      const channels = values[0].length;
      const told = readout("Point at the picture, or use the arrow keys, to see a value.");
      const side = source.length && target.length ? "source and translation" : source.length ? "source" : "translation";
      // Sines (the even channels) to the left of the cosines: interleaved, their patterns are hard to see.
      const order = [...values[0].keys()];
      if (positions.kind === "sinusoidal") order.sort((a, b) => (a % 2) - (b % 2) || a - b);
      const canvas = make("canvas", { tabindex: 0, role: "img",
        "aria-label": `Positional encodings of the ${side}: ${values.length} positions, ${channels} channels` });
      painted(canvas, channels, values.length, (pixels, colour) => {
        const [positive, negative] = [colour("--accent"), colour("--marked")];
        values.flatMap((row) => order.map((c) => row[c])).forEach((value, i) =>
          pixels.set([...(value < 0 ? negative : positive), (255 * Math.abs(value)) / ONE], 4 * i));
      });
      const names = values.map((_, n) =>
        [source[n], target[n]].filter((piece) => piece !== undefined).map(shown).join(" · "));
      const labels = make("div", { class: "labels" }, ...names.map((name, n) => make("span", {}, `${n}  ${name}`)));
      const box = make("div", { class: "positions" }, labels, canvas);
      box.style.setProperty("--row", `${values.length > 25 ? 15 : 22}px`);
      canvas.style.height = `calc(${values.length} * var(--row))`;
      const show = (n, column) => {
        const c = order[column];
        const i = c - (c % 2);
        const wave = ` = ${c % 2 ? "cos" : "sin"}(${n} / 10000^(${i}/${channels}))`;
        const formula = positions.kind === "sinusoidal" ? wave : "";
        const value = signed((values[n][c] * largest) / ONE, 3);
        told.textContent = `Position ${n} (${names[n]}), channel ${c} of ${channels}: ${value}${formula}`;
        labels.querySelector(".on")?.classList.remove("on");
        labels.children[n].classList.add("on");
        at = [n, column];
      };
      let at = [0, 0];
      const inside = (value, count) => Math.min(Math.max(Math.floor(value), 0), count - 1);
      ["pointermove", "click"].forEach((name) => canvas.addEventListener(name, (event) =>
        show(inside((event.offsetY / canvas.clientHeight) * values.length, values.length),
          inside((event.offsetX / canvas.clientWidth) * channels, channels))));
      canvas.addEventListener("keydown", (event) => {
        const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
        if (!step || isHeld(event)) return;
        event.preventDefault();
        show(inside(at[0] + step[0], values.length), inside(at[1] + step[1], channels));
      });
      return [...(all.length > 1 ? [make("h3", {}, `Encodings of the ${side}`)] : []), told, box];
    });
    const halves = all[0].kind === "sinusoidal" ? ", sines on the left, cosines on the right" : "";
    return section(`Positions (${all[0].kind})`,
      "The vectors added to the embeddings to encode the order of the pieces. Each row is a position, " +
        `each column a channel${halves}; blue is positive, orange negative.`, ...parts);
  }

  function draw(element, data) {
    const source = data.maps.find((maps) => maps.use === "source");
    const parts = [drawRibbon(source), drawMaps(data.maps), drawSearch(data.search, data.flags.includes("cut"))];
    if (data.positions.length) parts.push(drawPositions(data.positions));
    element.classList.add("transduce");
    element.replaceChildren(...parts);
  }

  return { draw, repaint };
})();
