/** The page: it passes the text to a worker, which translates, and shows what comes back. */

import { copyFrom } from "./clipboard.js";
import { element, recall, remember, rewrite } from "./elements.js";

const PAUSE = 300; // milliseconds after the last key until the text is translated
const WAIT = 1000; // milliseconds until the page says that a translation takes time
const source = element("source-text"), target = element("target-text");
const worker = new Worker(new URL("worker.mjs", import.meta.url), { type: "module" });
let id = 0; // of the latest request; older answers are ignored
let isReady = false;
let timer = 0, waiting = 0;

function notice(sentence, action = "", onAction = null) {
  element("notice").hidden = !sentence;
  element("notice-text").textContent = sentence;
  element("notice-action").hidden = !action;
  element("notice-action").textContent = action;
  element("notice-action").onclick = onAction;
}

const state = (sentence) => (element("state").textContent = sentence);

function show(text, isDone) {
  target.textContent = text;
  target.classList.toggle("stale", false);
  target.setAttribute("aria-busy", String(!isDone));
  element("copy").hidden = !text.trim() || !isDone;
}

function translate() {
  clearTimeout(timer);
  clearTimeout(waiting);
  id++;
  const text = source.value;
  if (!text.trim()) {
    show("", true);
    return state(isReady ? "" : "Loading the model …");
  }
  const [direction, beamSize] = ["direction", "search"].map((name) => Number(element(name).value));
  element("copy").hidden = true;
  target.setAttribute("aria-busy", "true");
  waiting = setTimeout(state, WAIT, isReady ? "Translating …" : "Loading the model …");
  return worker.postMessage({ id, text, direction, beamSize: beamSize || 1 });
}

function changed() {
  element("mirror").textContent = `${source.value}\n`;
  document.body.classList.toggle("long", source.value.length > 400);
  element("clear").hidden = !source.value;
  target.classList.toggle("stale", Boolean(target.textContent));
  clearTimeout(timer);
  timer = setTimeout(translate, source.value.trim() ? PAUSE : 0);
}

function setUp({ directions, beamSize }) {
  const named = directions.map((each) => `${each.sourceName} → ${each.targetName}`);
  element("direction").replaceChildren(...named.map((name, number) => new Option(name, number)));
  const searches = [["Greedy search", 1], ["Beam search", beamSize > 1 ? beamSize : 4]];
  element("search").replaceChildren(...searches.map(([name, size]) => new Option(name, size)));
  for (const [name, usual] of [["direction", "0"], ["search", String(beamSize)]]) {
    const select = element(name);
    const stored = recall("localStorage", `transduce.site.${name}`);
    select.value = [...select.options].some(({ value }) => value === stored) ? stored : usual;
    select.disabled = false;
    select.onchange = () => {
      remember("localStorage", `transduce.site.${name}`, select.value);
      languages(directions);
      changed();
      translate();
    };
  }
  languages(directions);
}

function languages(directions) {
  const direction = directions[element("direction").value];
  source.lang = direction.source;
  target.lang = direction.target;
}

worker.onmessage = ({ data }) => {
  if (data.site) return setUp(data.site);
  if (data.ready) {
    isReady = true;
    document.documentElement.dataset.ready = "true";
    return state("");
  }
  if (data.error && (data.id ?? id) === id) {
    clearTimeout(waiting);
    state("");
    return notice(`The page can't translate: ${data.error}`, "Load the page again", () => location.reload());
  }
  if (data.id !== id) return null; // of an older text
  if (data.done) {
    clearTimeout(waiting);
    show(target.textContent, true);
    return state("");
  }
  if (data.share < 1) state(`Translating … ${Math.round(100 * data.share)} %`);
  return show(data.text, false);
};
worker.onerror = (event) => notice(`The page can't translate: ${event.message || "its worker did not start"}.`, "Load the page again", () => location.reload());

source.addEventListener("input", changed);
source.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  translate();
});
element("clear").onclick = () => rewrite(source, "");
element("copy").onclick = () => copyFrom(element("copy"), target.textContent, "Not copied");

if (source.value) changed(); // the browser restored it

/** Keep the page on this device, so that it works without a network; a new version waits until the user takes it. */
async function keepOffline() {
  if (!("serviceWorker" in navigator)) return;
  const registration = await navigator.serviceWorker.register("service-worker.js");
  const offer = (next) => {
    if (!next || !navigator.serviceWorker.controller) return;
    notice("There is a new version of this page.", "Use it", () => next.postMessage("use"));
  };
  const follow = (next) => next?.addEventListener("statechange", () => next.state === "installed" && offer(next));
  offer(registration.waiting);
  follow(registration.installing);
  registration.addEventListener("updatefound", () => follow(registration.installing));
  let hadController = Boolean(navigator.serviceWorker.controller);
  navigator.serviceWorker.addEventListener("controllerchange", () => {
    if (hadController) location.reload();
    hadController = true;
  });
}

keepOffline().catch(() => (element("offline").textContent = "This browser can't keep the page: it needs a network."));
