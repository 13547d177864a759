/** A text and its languages in the page's address, after "#". Browsers don't send this part to a server. */

/** The text and the languages in the address: {q, source, target}, or null. */
export function readLink() {
  const fields = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  return fields.q ? fields : null;
}

/** Write a text and its languages into the address, and return the address. */
export function writeLink({ q, source, target }) {
  const fields = Object.entries({ source, target, q: q.toWellFormed?.() ?? q }); // not half a surrogate pair
  history.replaceState(null, "", `#${fields.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&")}`);
  return location.href;
}

/** Remove the text from the address. */
export function removeLink() {
  history.replaceState(null, "", location.pathname + location.search);
}
