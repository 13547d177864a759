/** Completes the user's own translation of a passage while the user writes it, and offers other translations of words. */

import { make } from "./elements.js";
import { ask } from "./service.js";

const PAUSE = 150; // milliseconds after the last keystroke
const MANY = 3; // other translations of marked words

/** What completes `field`, a text area, for a passage; `request` holds the languages. Returns the list of other translations. */
export function complete(field, passage, request) {
  const others = make("div", "others");
  others.setAttribute("role", "group");
  others.setAttribute("aria-label", "Other translations of the marked words");
  field.setAttribute("aria-autocomplete", "inline");
  let timer = 0;
  let running = null; // the AbortController of the newest request
  let offered = -1; // where the offered completion begins, which is selected; -1: none is offered
  let isWriting = false; // this script changes the text

  const later = (action) => {
    clearTimeout(timer);
    running?.abort();
    timer = setTimeout(action, PAUSE);
  };

  /** The server's translation with the given characters; null if there is none, since it is only an offer. */
  const translation = async (given) => {
    const { signal } = (running = new AbortController());
    const { source, target, glossary } = request;
    try {
      return await ask("translate", { q: passage.source, source, target, glossary, format: "text", ...given }, signal);
    } catch {
      return null;
    }
  };

  /** Write a text in the place of the selected one, so that the browser's undo restores it. */
  const write = (text) => {
    isWriting = true;
    document.execCommand(text ? "insertText" : "delete", false, text);
    isWriting = false;
  };

  const isAtEnd = () => field.selectionStart === field.value.length && document.activeElement === field;
  const isOffered = () => offered >= 0 && field.selectionStart === offered && field.selectionEnd === field.value.length;

  const offer = async () => {
    const typed = field.value;
    const answer = await translation({ prefix: typed });
    if (!answer?.translatedText.startsWith(typed) || answer.translatedText === typed) return;
    if (field.value !== typed || !isAtEnd()) return; // the user went on
    write(answer.translatedText.slice(typed.length));
    offered = typed.length;
    field.setSelectionRange(offered, field.value.length);
  };

  const showOthers = async () => {
    const [begin, end, text] = [field.selectionStart, field.selectionEnd, field.value];
    const marked = text.slice(begin, end);
    if (isOffered() || !marked.trim() || marked.trim() === text.trim()) return;
    const [prefix, suffix] = [text.slice(0, begin), text.slice(end)];
    const answer = await translation({ prefix, suffix, alternatives: MANY });
    if (!answer || field.value !== text) return;
    const found = [answer.translatedText, ...(answer.alternatives ?? [])].map((each) =>
      each.slice(prefix.length, each.length - suffix.length),
    );
    const distinct = found.filter((each, i) => each.trim() && each !== marked && found.indexOf(each) === i);
    others.replaceChildren(...distinct.map((each) => otherButton(each, begin, end)));
    if (!distinct.length) others.replaceChildren(make("p", "soft", "The model found no other translation of these words."));
  };

  const otherButton = (text, begin, end) => {
    const button = make("button", "quiet", text.trim());
    button.type = "button";
    button.lang = request.target;
    button.addEventListener("click", () => {
      field.focus();
      field.setSelectionRange(begin, end);
      write(text);
      others.replaceChildren();
    });
    return button;
  };

  field.addEventListener("input", (event) => {
    if (isWriting) return;
    offered = -1;
    others.replaceChildren();
    later(() => {
      if (event.inputType === "insertText" && isAtEnd() && field.value.trim()) offer();
    });
  });
  field.addEventListener("select", () => {
    if (!isWriting && !isOffered()) later(showOthers);
  });
  field.addEventListener("keydown", (event) => {
    if (!isOffered() || !["Tab", "Escape"].includes(event.key) || event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation(); // Escape would close the list of alternatives
    if (event.key === "Escape") write("");
    else field.setSelectionRange(field.value.length, field.value.length);
    offered = -1;
  });
  return others;
}
