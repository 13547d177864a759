/** Requests to the server: JSON, uploads and downloads; a sentence for every failure; and the API key. */

import { element, forget, recall, remember } from "./elements.js";

const KEY = "transduce.key";
const NO_KEY = "This server requires an API key.";
/** By status, for the answers of proxies, which are pages. */
const SENTENCES = {
  404: "The server has nothing at this address. Load the page again.",
  413: "This is too large for the server. Send it in parts.",
  500: "The server failed. Try again, or tell the person who runs the server.",
  502: "A proxy can't reach the server.",
  503: "The server is not available now.",
  504: "The server took too long to answer. A shorter text takes less time.",
};

/** A failed request. `status` 0: the server can't be reached. `wait`: seconds until the next try, or null. */
export class Failure extends Error {
  constructor(sentence, status = 0, wait = null) {
    super(sentence);
    this.status = status;
    this.wait = wait;
  }

  /** Whether the same request may succeed later. */
  get passes() {
    return [0, 429, 502, 503, 504].includes(this.status);
  }
}

/** The server's answer to GET, or to POST with `body`; asks the user for a key if one is needed. Throws Failure. */
export async function ask(path, body = null, signal = undefined) {
  try {
    return await request(path, body, signal);
  } catch (error) {
    if (!wantsKey(error) || !(await keyFor(error.message))) throw error;
    signal?.throwIfAborted();
    return request(path, body, signal);
  }
}

async function request(path, body, signal) {
  const headers = authorization();
  if (body) headers["Content-Type"] = "application/json";
  try {
    const options = body ? { method: "POST", body: JSON.stringify(body) } : {};
    const response = await fetch(path, { ...options, headers, signal });
    const text = await response.text();
    if (!response.ok) throw failure(response.status, text, response.headers.get("Retry-After"));
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof Failure || signal?.aborted) throw error;
    if (error instanceof SyntaxError) throw new Failure("The server's answer can't be read: it is not JSON.", 500);
    throw new Failure(
      navigator.onLine ? "The server can't be reached." : "This device is offline. Your text is not lost.",
    );
  }
}

/** Download the file at `path`, with the API key. Throws Failure. */
export async function fetchFile(path) {
  const response = await fetch(path, { headers: authorization() }).catch(() => {
    throw new Failure("The server can't be reached.");
  });
  if (!response.ok) throw failure(response.status, await response.text(), response.headers.get("Retry-After"));
  return response.blob();
}

/** The Failure for a status and a body, {"error": "a sentence"} if it comes from the server. */
export function failure(status, text, retryAfter) {
  let sentence = "";
  try {
    sentence = JSON.parse(text).error;
  } catch {
    // a proxy's page, not the server's sentence
  }
  if (status === 401) sentence = NO_KEY; // the server's sentence is for programs
  if (typeof sentence !== "string" || !sentence)
    sentence = `${SENTENCES[status] ?? "The server can't answer this request."} (Status ${status})`;
  return new Failure(sentence, status, seconds(retryAfter));
}

/** A Retry-After header in seconds: a number or a date; null if it is neither. */
function seconds(header) {
  if (!header) return null;
  const wait = /^\d+$/.test(header.trim()) ? Number(header) : (Date.parse(header) - Date.now()) / 1000;
  return Number.isFinite(wait) ? Math.max(0, wait) : null;
}

/**
 * Send a form with a file; `progress` is called with the share that is sent, from 0 to 1.
 * Returns {answer: Promise, cancel}; the promise of a cancelled request never settles.
 */
export function upload(path, form, progress) {
  const sending = new XMLHttpRequest();
  const answer = new Promise((resolve, reject) => {
    sending.open("POST", path);
    for (const [name, value] of Object.entries(authorization())) sending.setRequestHeader(name, value);
    sending.upload.onprogress = (event) => event.lengthComputable && progress(event.loaded / event.total);
    sending.upload.onload = () => progress(1);
    sending.onerror = () => reject(new Failure("The server can't be reached."));
    sending.onload = () => {
      if (sending.status < 200 || sending.status > 299)
        return reject(failure(sending.status, sending.responseText, sending.getResponseHeader("Retry-After")));
      try {
        resolve(JSON.parse(sending.responseText));
      } catch {
        reject(new Failure("The server's answer can't be read: it is not JSON.", 500));
      }
    };
    sending.send(form);
  });
  return { answer, cancel: () => sending.abort() };
}

/** Whether another key may help: a server without keys refuses pages of other websites with 403, too. */
export const wantsKey = ({ status }) =>
  status === 401 || (status === 403 && (!element("key-open").hidden || "Authorization" in authorization()));

const stored = () => recall("sessionStorage", KEY) ?? recall("localStorage", KEY) ?? "";

function authorization() {
  const key = stored();
  if (!key) return {};
  const sent = /^[!-~]+$/.test(key) ? key : encodeURIComponent(key); // a header takes no other characters
  return { Authorization: `Bearer ${sent}` };
}

let asking = null; // the promise of the open dialog
let refused = false; // "Not now" holds until the person opens the dialog

/** Ask the user for the key, unless the user has refused before; concurrent requests wait for one dialog. */
export function keyFor(sentence = NO_KEY, again = false) {
  if (refused && !again) return Promise.resolve(false);
  asking ??= dialog(sentence).finally(() => (asking = null));
  return asking;
}

function dialog(sentence) {
  const [box, value, keep] = [element("key"), element("key-value"), element("key-keep")];
  element("key-sentence").textContent = sentence;
  const before = document.activeElement;
  const known = stored(); // not in the field: typed letters would be appended to it
  value.placeholder = known && "Empty: as before";
  keep.checked = recall("localStorage", KEY) !== null;
  box.showModal();
  return new Promise((resolve) => {
    element("key-cancel").onclick = () => box.close();
    let given = false;
    element("key-form").onsubmit = (event) => {
      event.preventDefault(); // the form is not sent: the key goes into a header
      forget("sessionStorage", KEY);
      forget("localStorage", KEY);
      const key = value.value.trim() || known;
      if (key) remember(keep.checked ? "localStorage" : "sessionStorage", KEY, key);
      given = true;
      box.close();
    };
    box.onclose = () => {
      refused = !given;
      value.value = "";
      before.blur(); // Chromium restores the focus without a caret, and typed letters would be lost
      before.focus();
      if (document.activeElement === document.body) element("source-text").focus(); // `before` is hidden now
      resolve(given);
    };
  });
}
