/* Pictures that answer: point at a cell, or focus the picture and go from cell to cell with the arrow keys. What the
   cell is (coordinate, offset, bank, thread) stands below the picture, where a screen reader reads it. And a picture that
   is a little wider than the page is made to fit.

   The pictures are SVG that tilelab drew; each cell brings its note. Without JavaScript the notes are tooltips. Works
   from files: nothing is loaded. */
"use strict";

(() => {
  const WORDS = {
    en: { role: "picture with cells", label: (title) => `${title}. The arrow keys go from cell to cell.` },
    ko: { role: "칸이 있는 그림", label: (title) => `${title}. 화살표 키로 칸을 옮겨 다닙니다.` },
  };
  const SVG = "http://www.w3.org/2000/svg";

  class TilePicture extends HTMLElement {
    #cells = [];
    #here = null;
    #frame = document.createElementNS(SVG, "rect");
    #told = document.createElement("p");

    connectedCallback() {
      if (this.#cells.length) return;
      const words = WORDS[document.documentElement.lang.slice(0, 2)] || WORDS.en;
      const svg = this.querySelector("svg");
      for (const rect of svg.querySelectorAll("rect:has(> title)")) {
        const title = rect.querySelector("title");
        const box = ["x", "y", "width", "height"].map((name) => Number(rect.getAttribute(name)));
        this.#cells.push({ rect, box, x: box[0] + box[2] / 2, y: box[1] + box[3] / 2, note: title.textContent });
        title.remove();
      }
      this.#frame.setAttribute("class", "here");
      svg.append(this.#frame);
      this.#told.setAttribute("role", "status");
      this.append(this.#told);
      this.tabIndex = 0;
      this.setAttribute("role", "application");
      this.setAttribute("aria-roledescription", words.role);
      this.setAttribute("aria-label", words.label(svg.getAttribute("aria-label")));
      const of = new Map(this.#cells.map((cell) => [cell.rect, cell]));
      svg.addEventListener("pointerover", (event) => of.has(event.target) && this.show(of.get(event.target)));
      this.addEventListener("focus", () => this.#here || this.show(this.#cells[0]));
      this.addEventListener("keydown", (event) => this.#key(event));
    }

    /* Mark a cell and say what it is. */
    show(cell) {
      this.#here = cell;
      ["x", "y", "width", "height"].forEach((name, i) => this.#frame.setAttribute(name, cell.box[i]));
      this.#told.textContent = cell.note;
    }

    #key(event) {
      const next = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
      const end = { Home: [-1, 0], End: [1, 0] }[event.key];
      if ((!next && !end) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      const [dx, dy] = next || end;
      const ahead = (cell) => (cell.x - this.#here.x) * dx + (cell.y - this.#here.y) * dy;
      const aside = (cell) => Math.abs((cell.x - this.#here.x) * dy) + Math.abs((cell.y - this.#here.y) * dx);
      const reach = dx ? this.#here.box[3] / 2 : this.#here.box[2] / 2;
      const line = this.#cells.filter((cell) => ahead(cell) > 0.5 && aside(cell) < reach);
      if (!line.length) return;
      line.sort((a, b) => ahead(a) - ahead(b));
      this.show(next ? line[0] : line[line.length - 1]);
      this.#here.rect.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
  }

  customElements.define("tile-picture", TilePicture);

  function wrap() {
    for (const svg of document.querySelectorAll("svg.tilelab:has(rect > title)")) {
      const place = document.createComment("");
      const picture = document.createElement("tile-picture");
      svg.replaceWith(place);
      picture.append(svg);
      place.replaceWith(picture);
    }
  }

  /* A picture smaller than this share of itself could not be read: it keeps its size and scrolls. */
  const LEGIBLE = 0.7;

  function fit() {
    for (const svg of document.querySelectorAll(".cell_output svg.tilelab")) {
      svg.style.width = svg.style.height = "";
      const wide = Number(svg.getAttribute("width"));
      const room = svg.closest("div").clientWidth;
      if (room < wide && room >= LEGIBLE * wide) {
        svg.style.width = `${room}px`;
        svg.style.height = "auto";
      }
    }
  }

  function start() {
    wrap();
    fit();
    window.addEventListener("resize", fit);
    document.addEventListener("toggle", fit, true);
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
