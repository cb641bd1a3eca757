"use strict";

// What is wider than the page scrolls on its own, and a keyboard scrolls only what it can reach.
const WIDE = "article pre, article .table-wrapper";

function letScroll() {
  for (const box of document.querySelectorAll(WIDE)) {
    if (box.scrollWidth > box.clientWidth) {
      box.tabIndex = 0;
    } else {
      box.removeAttribute("tabindex");
    }
  }
}

addEventListener("load", letScroll);
addEventListener("resize", letScroll);
