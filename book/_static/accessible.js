/* Mend what the theme leaves out for readers who use a keyboard or a screen reader. */
"use strict";

(() => {
  /* A name that differs from the words on the button hides them from whoever speaks to the page. */
  const NAMED_OTHERWISE = "details.hide > summary, .search-button-field";

  /* Pictures and formulas that are wider than the page scroll; so they must be reachable by keyboard. */
  const SCROLLING = ".cell_output .text_html > div, .tl-scroll, mjx-container[display='true']";

  function nameByContent() {
    for (const button of document.querySelectorAll(NAMED_OTHERWISE)) {
      if (button.innerText.trim()) button.removeAttribute("aria-label");
    }
    /* The book's name stands beside the landmarks; it leads home, so it is navigation. */
    const home = document.querySelector(".sidebar-primary-items__start > .sidebar-primary-item:has(.navbar-brand)");
    home?.setAttribute("role", "navigation");
    home?.setAttribute("aria-label", document.querySelector(".navbar-brand").innerText.trim());
  }

  /* The icons of the theme's switch bring words of their own; its label is enough. They are drawn late. */
  function silenceIcons() {
    const button = document.querySelector(".theme-switch-button");
    if (!button) return;
    const silence = () => {
      for (const icon of button.querySelectorAll(".theme-switch:not([aria-hidden])")) icon.setAttribute("aria-hidden", "true");
      for (const icon of button.querySelectorAll("[title]")) icon.removeAttribute("title");
      for (const title of button.querySelectorAll("title")) title.remove();
    };
    silence();
    new MutationObserver(silence).observe(button, { childList: true, subtree: true });
  }

  function reachable() {
    for (const box of document.querySelectorAll(SCROLLING)) {
      /* A picture with cells is a stop already, and scrolls to the cell that is looked at. */
      const stop = box.querySelector("tile-picture");
      if (box.scrollWidth > box.clientWidth && !stop) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  }

  function mend() {
    nameByContent();
    silenceIcons();
    reachable();
    new ResizeObserver(reachable).observe(document.body);
    window.MathJax?.startup?.promise?.then(reachable);
    document.addEventListener("toggle", reachable, true);
  }

  if (document.readyState === "complete") mend();
  else window.addEventListener("load", mend);
})();
