// What the theme leaves out for the keyboard and for screen readers.

"use strict";

(() => {
  // A block that is wider than its column can be scrolled by the arrow keys. The theme forgets this on touch screens.
  const mark = (block) => {
    const isWide = block.scrollWidth > block.clientWidth;
    if (isWide && !block.hasAttribute("tabindex")) block.setAttribute("tabindex", 0);
  };
  const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => mark(target)));
  const attributes = new MutationObserver((records) => records.forEach(({ target }) => mark(target)));
  const watched = new WeakSet();
  const watchAll = () => document.querySelectorAll("pre > code, .equation, .md-typeset__scrollwrap").forEach((block) => {
    if (watched.has(block)) return;
    watched.add(block);
    sizes.observe(block);
    attributes.observe(block, { attributeFilter: ["tabindex"] });
  });

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
  const complete = () => {
    watchAll();
    nameAll();
  };
  new MutationObserver(complete).observe(document.body, { childList: true, subtree: true });
  complete();
})();
