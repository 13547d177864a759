/** Documents: the user chooses or drops a file, which is uploaded, translated and offered for download. */

import { element, make } from "./elements.js";
import { fetchFile, keyFor, upload, wantsKey } from "./service.js";

export class Documents {
  /** `limit` is in bytes; `question` returns the languages' codes {source, target} and the glossary, if any. */
  constructor({ supportedFilesFormat: formats, fileLimit: limit = Infinity }, question) {
    Object.assign(this, { formats, limit, question, running: null });
    element("tabs").hidden = false;
    element("document-formats").textContent = `Formats: ${formats.map((format) => format.replace(/^\./, "")).join(", ")}.`;
    const file = element("document-file");
    file.accept = formats.join(",");
    element("document-choose").addEventListener("click", () => file.click());
    file.addEventListener("change", () => {
      if (file.files.length) this.send(file.files[0]);
      file.value = ""; // the same file may be chosen again
    });
    element("document-cancel").addEventListener("click", () => {
      this.cancel();
      element("document-choose").focus();
    });
    this.listenForDrops();
  }

  listenForDrops() {
    let depth = 0; // a drag enters an element before it leaves the outer element
    const cover = (step) => {
      depth = step === 0 ? 0 : depth + step;
      document.body.classList.toggle("dropping", depth > 0);
    };
    const ofFiles = (event) => event.dataTransfer?.types.includes("Files");
    window.addEventListener("dragenter", (event) => ofFiles(event) && cover(1));
    window.addEventListener("dragleave", (event) => ofFiles(event) && cover(-1));
    window.addEventListener("dragover", (event) => ofFiles(event) && event.preventDefault());
    window.addEventListener("drop", (event) => {
      if (!ofFiles(event)) return;
      event.preventDefault();
      cover(0);
      const [file, another] = event.dataTransfer.files;
      if (another) this.refuse("Drop one document after the other.");
      else if (file) this.send(file);
    });
  }

  /** Upload a file, wait for its translation and offer that for download. */
  async send(file) {
    if (!this.formats.some((format) => file.name.toLowerCase().endsWith(format.toLowerCase())))
      return this.refuse(`can't be translated. Save it as one of these: ${this.formats.join(", ")}.`, file);
    if (file.size > this.limit) {
      const [has, most] = [file.size, this.limit].map((bytes) => bytes.toLocaleString("en"));
      return this.refuse(`has ${has} bytes; this server accepts at most ${most}. Split it.`, file);
    }
    this.cancel();
    this.begin(file.name);
    const form = new FormData();
    const { source, target, glossary } = this.question();
    form.append("file", file);
    form.append("source", source);
    form.append("target", target);
    if (glossary) form.append("glossary", JSON.stringify(glossary));
    const mine = (this.running = upload("translate_file", form, (share) => this.running === mine && this.progress(share)));
    try {
      const { translatedFileUrl } = await mine.answer;
      // The path relative to this page: behind a proxy, the server may not know its public address.
      const translated = await fetchFile(/download_file\/[^/?#]+$/.exec(translatedFileUrl)?.[0] ?? "");
      if (this.running === mine) this.finish(translated, file.name.replace(/(\.[^.]*)$/, `.${target}$1`));
    } catch (error) {
      const given = this.running === mine && wantsKey(error) && (await keyFor(error.message));
      if (this.running !== mine) return; // the user chose another file or cancelled
      if (given) this.send(file);
      else this.refuse(error.message, file);
    }
  }

  begin(name) {
    element("tab-documents").checked = true;
    element("document").hidden = false;
    element("document-refused").textContent = "";
    element("document-name").textContent = name;
    element("document-progress").hidden = false;
    element("document-cancel").hidden = false;
    element("document-link").hidden = true;
    element("document-state").textContent = "is being sent …";
    this.progress(0);
  }

  progress(share) {
    const bar = element("document-progress");
    if (share < 1) bar.value = share;
    else {
      bar.removeAttribute("value"); // the progress of a translation is not known
      element("document-state").textContent = "is being translated …";
    }
  }

  finish(translated, name) {
    this.running = null;
    const link = element("document-link");
    const waits = [document.body, element("document-cancel")].includes(document.activeElement); // not typing
    if (link.href) URL.revokeObjectURL(link.href);
    link.href = URL.createObjectURL(translated);
    link.download = name;
    link.hidden = false;
    element("document-state").textContent = "is translated.";
    element("document-progress").hidden = true;
    element("document-cancel").hidden = true;
    if (waits) link.focus({ preventScroll: true });
  }

  /** Say why a file is not translated. Another document is forgotten. */
  refuse(sentence, file = { name: "" }) {
    this.cancel();
    element("tab-documents").checked = true;
    element("document-refused").replaceChildren(make("bdi", "", file.name), ` ${sentence}`);
  }

  cancel() {
    this.running?.cancel();
    this.running = null;
    element("document").hidden = true;
  }
}
