/** The panel that draws the model's attention, by the same script as the page of `transduce attention`. */

import { element } from "./elements.js";
import { ask } from "./service.js";

export class AttentionPanel {
  constructor(facing) {
    this.facing = facing;
    this.panel = element("attention");
    this.place = 0; // of the shown passage in `facing.passages`
    this.asked = null; // the request that the drawing shows or waits for, as JSON
    this.running = null; // the AbortController of that request
    this.panel.addEventListener("toggle", () => this.refresh());
    element("attention-before").addEventListener("click", () => this.turn(-1));
    element("attention-next").addEventListener("click", () => this.turn(1));
  }

  turn(step) {
    this.place += step;
    this.refresh();
  }

  /** Show this passage. */
  lookAt(passage) {
    this.place = Math.max(0, this.facing.passages.indexOf(passage));
    this.refresh();
  }

  /** Draw the current passage, if the panel is open and doesn't show that passage yet. */
  async refresh() {
    const all = this.facing.passages;
    this.place = Math.min(Math.max(0, this.place), Math.max(0, all.length - 1));
    element("attention-sentence").hidden = all.length === 0;
    element("attention-before").disabled = this.place === 0;
    element("attention-next").disabled = this.place >= all.length - 1;
    if (!this.panel.open) return;
    if (!all.length) return this.say("Write a text to see what the model attends to.");
    const passage = all[this.place];
    const { source, target } = this.facing.request;
    const asked = { q: passage.source, source, target };
    const key = JSON.stringify(asked);
    if (key === this.asked) return;
    element("attention-text").textContent = passage.source;
    element("attention-text").lang = source;
    this.say("Loading …");
    this.asked = key;
    const { signal } = (this.running = new AbortController());
    try {
      const [data] = await Promise.all([ask("attention", asked, signal), drawing()]);
      if (signal.aborted) return;
      element("attention-state").textContent = "";
      window.transduce.draw(element("attention-drawing"), data);
    } catch (error) {
      if (!signal.aborted) this.say(error.message);
    }
  }

  /** Show a sentence instead of a drawing, and cancel the request for the drawing. */
  say(sentence) {
    this.running?.abort();
    this.asked = null;
    element("attention-drawing").replaceChildren();
    element("attention-state").textContent = sentence;
  }
}

let loading = null;

/** Load the script and the style of the drawing, only once and only when they are needed. */
function drawing() {
  loading ??= Promise.all([
    loaded("link", { rel: "stylesheet", href: "drawing.css" }),
    loaded("script", { src: "drawing.js" }),
  ]).catch((error) => {
    loading = null; // to try again
    throw error;
  });
  return loading;
}

function loaded(name, properties) {
  const part = Object.assign(document.createElement(name), properties);
  return new Promise((resolve, reject) => {
    part.onload = resolve;
    part.onerror = () => {
      part.remove();
      reject(new Error("The drawing can't be loaded from the server. Close this section and open it again."));
    };
    document.head.append(part);
  });
}
