// What the theme leaves out for the keyboard and for screen readers.

"use strict";

(() => {
  // A block that is wider than its column can be scrolled by the arrow keys.
  const watcher = new ResizeObserver((entries) => entries.forEach(({ target }) =>
    target.scrollWidth > target.clientWidth ? target.setAttribute("tabindex", 0) : target.removeAttribute("tabindex")));
  document.querySelectorAll("pre > code, .equation, .md-typeset__scrollwrap").forEach((block) => watcher.observe(block));

  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");

  // Landmarks have names of their own: the theme makes one of every copy button, and one of every list of pages.
  let named = 0;
  const nameEach = (selector, name) => document.querySelectorAll(selector).forEach((nav) => {
    if (nav.hasAttribute("aria-label")) return;
    nav.removeAttribute("aria-labelledby");
    nav.setAttribute("aria-label", `${name} ${++named}`);
  });
  const nameAll = () => {
    nameEach("nav.md-code__nav", "Code block");
    nameEach("nav.md-nav", "Pages");
  };
  new MutationObserver(nameAll).observe(document.body, { childList: true, subtree: true });
  nameAll();
})();
