/** Translates in a thread of its own, so that the page stays responsive. A newer text replaces one that is in work. */

import * as ort from "./ort.wasm.min.mjs";
import { Sentences, translations } from "./text.mjs";
import { Translator } from "./translator.mjs";

ort.env.wasm.numThreads = 1; // more need headers that static hosts don't send
ort.env.wasm.wasmPaths = new URL("./", import.meta.url).href;

const load = (async () => {
  const answers = await Promise.all(["site.json", "encoder.onnx", "decoder.onnx"].map((name) => fetch(new URL(name, import.meta.url))));
  const missing = answers.find((answer) => !answer.ok);
  if (missing) throw new Error(`${missing.url} can't be loaded (status ${missing.status}).`);
  const site = await answers[0].json();
  postMessage({ site: { directions: site.directions, beamSize: site.beamSize } });
  const open = async (answer) => ort.InferenceSession.create(new Uint8Array(await answer.arrayBuffer()), { executionProviders: ["wasm"] });
  const encoder = await open(answers[1]);
  const decoder = await open(answers[2]);
  return new Translator(site, { Tensor: ort.Tensor, encoder, decoder });
})();

const splitters = new Map(); // by language
let latest = 0;

onmessage = async ({ data: { id, text, direction: number, beamSize } }) => {
  latest = id;
  try {
    const translator = await load;
    const direction = translator.site.directions[number];
    if (!splitters.has(direction.source)) splitters.set(direction.source, new Sentences(translator.site.fullStops, direction.source));
    for await (const part of translations(translator, splitters.get(direction.source), text, direction, { beamSize })) {
      await new Promise((resolve) => setTimeout(resolve)); // lets a newer text in
      if (latest !== id) return;
      postMessage({ id, ...part });
    }
    postMessage({ id, done: true });
  } catch (error) {
    postMessage({ id, error: String(error.message ?? error) });
  }
};

load.then(
  () => postMessage({ ready: true }),
  (error) => postMessage({ error: String(error.message ?? error) }),
);
