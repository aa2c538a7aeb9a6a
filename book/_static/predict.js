/* "Predict, then check": a small form above every hidden answer.

   The reader commits to an answer; then the output opens and the two are compared. The right answer is what the
   notebook's cell printed last, after "answer:", so nothing is typed here. A cell without such a line is only opened
   for the reader to compare. Works from files, by keyboard, and with a screen reader; without JavaScript the
   output still opens by itself. */
"use strict";

(() => {
  const WORDS = {
    en: {
      label: "Your answer",
      button: "Compare",
      right: (mine) => `Right: ${mine}.`,
      wrong: (mine, answer) => `You said ${mine}; the cell says ${answer}. See how it comes about below.`,
      open: (mine) => `You said: ${mine}. Compare it with the output.`,
    },
    ko: {
      label: "나의 답",
      button: "비교하기",
      right: (mine) => `맞았습니다: ${mine}`,
      wrong: (mine, answer) => `나의 답은 ${mine}, 셀의 답은 ${answer}입니다. 아래에서 과정을 확인하세요.`,
      open: (mine) => `나의 답: ${mine}. 출력과 비교해 보세요.`,
    },
  };
  const NUMBER = /^-?\d+(\.\d+)?$/;
  const TIMES = { kib: 1024, mib: 1024 ** 2, gib: 1024 ** 3 };

  const plain = (text) => text.toLowerCase().replace(/[\s`"']/g, "").replace(/−/g, "-").replace(/[.!]+$/, "");
  const bare = (text) => text.replace(/^\(([^()]*)\)$/, "$1");

  function same(mine, answer) {
    const [a, b] = [plain(mine), plain(answer)];
    if (NUMBER.test(b)) {
      const last = [...a.matchAll(/(-?\d+(?:\.\d+)?)([kmg]ib)?/g)].pop();
      /* A cell that asks for KiB prints their number, one that asks for bytes takes KiB as well. */
      return last !== undefined && [1, TIMES[last[2]]].some((times) => last[1] * times === Number(b));
    }
    return bare(a) === bare(b);
  }

  class PredictAnswer extends HTMLElement {
    /* The cell whose output is hidden; set before the element enters the page. */
    cell = null;

    get answer() {
      const printed = [...this.cell.querySelectorAll("details .cell_output pre")].map((pre) => pre.textContent);
      const last = printed.join("\n").trimEnd().match(/(?:^|\n)answer: (.+)$/);
      return last ? last[1] : null;
    }

    connectedCallback() {
      const words = WORDS[document.documentElement.lang.slice(0, 2)] || WORDS.en;
      const form = document.createElement("form");
      const label = document.createElement("label");
      const input = document.createElement("input");
      const button = document.createElement("button");
      const verdict = document.createElement("p");
      label.append(words.label, input);
      input.type = "text";
      input.required = true;
      input.autocomplete = "off";
      input.spellcheck = false;
      input.setAttribute("autocapitalize", "off");
      button.textContent = words.button;
      verdict.setAttribute("role", "status");
      form.append(label, button, verdict);
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        this.cell.querySelector("details").open = true;
        const mine = input.value.trim();
        const answer = this.answer;
        const verdictOf = answer === null ? "open" : same(mine, answer) ? "right" : "wrong";
        this.dataset.verdict = verdictOf;
        verdict.textContent = words[verdictOf](mine, answer);
      });
      this.append(form);
    }
  }

  customElements.define("predict-answer", PredictAnswer);

  function ask() {
    for (const cell of document.querySelectorAll(".cell.tag_hide-output")) {
      const element = document.createElement("predict-answer");
      element.cell = cell;
      const question = cell.previousElementSibling;
      cell.before(element);
      if (question && question.matches("p")) {
        question.id ||= `question-${cell.parentElement.id}-${[...cell.parentElement.children].indexOf(cell)}`;
        element.querySelector("input").setAttribute("aria-describedby", question.id);
      }
    }
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", ask);
  else ask();
})();
