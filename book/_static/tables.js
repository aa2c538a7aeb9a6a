/* On a phone, a table that does not fit stands with the cells of a row below each other, each after the name of its
   column. Where it fits, and without JavaScript, it stays as it is and scrolls by itself. */
"use strict";

(() => {
  const PHONE = window.matchMedia("(max-width: 600px)");
  const TABLES = ".pst-scrollable-table-container > table:has(thead)";

  function name(table) {
    const names = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
    for (const row of table.querySelectorAll("tbody tr")) {
      [...row.cells].forEach((cell, column) => (cell.dataset.column = names[column] || ""));
    }
  }

  function stack() {
    for (const table of document.querySelectorAll(TABLES)) {
      table.classList.remove("stacked");
      const box = table.parentElement;
      if (PHONE.matches && box.scrollWidth > box.clientWidth) {
        name(table);
        table.classList.add("stacked");
      }
    }
  }

  /* Letters of another width may come late. */
  window.addEventListener("load", () => {
    stack();
    window.addEventListener("resize", stack);
  });
})();
