/** A field for the user's own translation of a passage, which the server keeps in its translation memory. */

import { complete } from "./completion.js";
import { make } from "./elements.js";
import { notice } from "./messages.js";
import { ask } from "./service.js";

const HELP = "While you write, Tab takes the completion. Mark a word for other translations of it.";
const KEPT = "The server keeps this translation, and uses it for this sentence from now on.";
const WAITS = "The server keeps this translation until a person has checked it.";

/** The form for a passage; `request` holds the languages, `onKept` is called with the text that the server keeps. */
export function correctionForm(passage, request, onKept) {
  const form = make("form", "correction");
  const label = make("label", "", "Your own translation");
  const field = make("textarea");
  Object.assign(field, { rows: 2, dir: "auto", lang: request.target, value: passage.shown, autocomplete: "off" });
  label.append(field);
  const others = complete(field, passage, request);
  const help = make("p", "soft", HELP);
  help.id = "correction-help";
  field.setAttribute("aria-describedby", help.id);
  const keep = make("button", "button", "Keep");
  keep.type = "submit";
  const refused = make("p", "wrong");
  refused.setAttribute("role", "alert");
  form.append(label, keep, help, others, refused);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = field.value.trim();
    if (!text || keep.disabled) return;
    keep.disabled = true;
    try {
      const { source, target } = request;
      const answer = await ask("suggest", { q: passage.source, s: text, source, target });
      onKept(text);
      notice(answer.state === "waiting" ? WAITS : KEPT);
    } catch (error) {
      refused.textContent = error.message;
      field.focus({ preventScroll: true }); // a disabled button has lost it
    } finally {
      keep.disabled = false;
    }
  });
  return form;
}
