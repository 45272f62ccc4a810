// Tables that scroll by themselves can be scrolled with the keyboard, and the search says what it is.
(() => {
  "use strict";
  const name = () => {
    for (const table of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) {
      table.tabIndex = 0;
      table.setAttribute("role", "group");
      table.setAttribute("aria-label", "Table");
    }
    // One landmark for the contents of a page is enough: its parts, and the buttons of blocks of code, are groups.
    for (const part of document.querySelectorAll(".md-code__nav:not([role]), .md-nav .md-nav:not([role])")) part.setAttribute("role", "group");
    document.querySelector(".md-search[role=dialog]:not([aria-label])")?.setAttribute("aria-label", "Search");
  };
  name();
  new MutationObserver(name).observe(document.body, { childList: true, subtree: true });
})();
