/** Talking to the server: JSON in, JSON out, every failure as one sentence, and the API key. */

import { element, forget, recall, remember } from "./elements.js";

const KEY = "transduce.key";

/** What went wrong, in a sentence; `status` 0 is a server that can't be reached; `wait` is in seconds, or null. */
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

/** The answer of `path` (to `body`, if there is one); asks for the key if the server wants one. Throws Failure. */
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
      navigator.onLine ? "The server can't be reached." : "This device is offline; nothing you wrote is lost.",
    );
  }
}

/** The file at `path`, with its name, which needs the key like everything else. Throws Failure. */
export async function fetchFile(path) {
  const response = await fetch(path, { headers: authorization() }).catch(() => {
    throw new Failure("The server can't be reached.");
  });
  if (!response.ok) throw failure(response.status, await response.text(), response.headers.get("Retry-After"));
  const [, name] = /filename\*=UTF-8''([^;]+)/.exec(response.headers.get("Content-Disposition") ?? "") ?? [];
  return new File([await response.blob()], name ? decodeURIComponent(name) : "translation");
}

/** A failure from a status and what the server said: {"error": "a sentence"}. */
export function failure(status, text, retryAfter) {
  let sentence = "";
  try {
    sentence = JSON.parse(text).error;
  } catch {
    // a proxy's page, not the server's sentence
  }
  if (typeof sentence !== "string" || !sentence) sentence = `The server answered with status ${status}.`;
  return new Failure(sentence, status, seconds(retryAfter));
}

/** A Retry-After header in seconds: a number or a date; null if it is neither. */
function seconds(header) {
  if (!header) return null;
  const wait = /^\d+$/.test(header.trim()) ? Number(header) : (Date.parse(header) - Date.now()) / 1000;
  return Number.isFinite(wait) ? Math.max(0, wait) : null;
}

/**
 * Send a form with a file and see how far it has got: `progress` is called with what share is sent.
 * Returns {answer: Promise, cancel}; a cancelled answer stays open for ever.
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

export const wantsKey = (error) => error instanceof Failure && [401, 403].includes(error.status);

function authorization() {
  const key = recall("sessionStorage", KEY) ?? recall("localStorage", KEY);
  if (!key) return {};
  const sent = /^[!-~]+$/.test(key) ? key : encodeURIComponent(key); // what a header takes: any other is wrong anyway
  return { Authorization: `Bearer ${sent}` };
}

let asking = null; // the one open question for the key
let refused = false; // "Not now" holds until the person opens the dialog

/** Ask for the key unless the person didn't want to give it; several who need it wait for one dialog. */
export function keyFor(sentence, again = false) {
  if (refused && !again) return Promise.resolve(false);
  asking ??= dialog(sentence).finally(() => (asking = null));
  return asking;
}

function dialog(sentence) {
  const [box, value, keep] = [element("key"), element("key-value"), element("key-keep")];
  element("key-sentence").textContent = sentence;
  const before = document.activeElement;
  value.value = recall("sessionStorage", KEY) ?? recall("localStorage", KEY) ?? "";
  keep.checked = recall("localStorage", KEY) !== null;
  box.showModal();
  value.select();
  return new Promise((resolve) => {
    element("key-cancel").onclick = () => box.close();
    let given = false;
    element("key-form").onsubmit = (event) => {
      event.preventDefault(); // nothing is sent: the key goes into a header
      forget("sessionStorage", KEY);
      forget("localStorage", KEY);
      if (value.value.trim()) remember(keep.checked ? "localStorage" : "sessionStorage", KEY, value.value.trim());
      given = true;
      box.close();
    };
    box.onclose = () => {
      refused = !given;
      value.value = "";
      before.blur(); // Chromium gives the focus back without a caret: what one types then is lost
      before.focus();
      resolve(given);
    };
  });
}
