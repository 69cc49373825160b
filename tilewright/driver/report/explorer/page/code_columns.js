// The texts of a kernel side by side; lines that belong together light up.

import { h } from "./element.js";
import { newLines } from "./line_diff.js";
import { Links, subjects, traceSubjects } from "./links.js";
import { tokens } from "./tokens.js";
import { VirtualList } from "./virtual_list.js";

const LINE_HEIGHT = 19;
// Name, title, language.
const COLUMNS = [
  ["tensor", "Tensor expression", "loops"],
  ["lowered", "Lowered loops", "loops"],
  ["trace", "Schedule trace", "trace"],
  ["step", "Loops after step", "loops"],
  ["finalized", "Finalized loops", "loops"],
  ["llvm", "LLVM", "llvm"],
  ["assembly", "Assembly", "assembly"],
];

export function codeColumns(texts) {
  return new CodeColumns(texts).element;
}

class CodeColumns {
  constructor(texts) {
    this.texts = texts;
    this.links = new Links("finalized", subjects(texts.tensor).flat().map((stage) => stage.name));
    this.columns = new Map();
    this.lit = new Map();
    this.pinned = null;
    this.strip = h("div", { class: "columns" });
    this.tabs = h("nav", { class: "stages", "aria-label": "Stages" });
    this.element = h("div", {}, h("h3", { class: "way" }, "From tensor expression to assembly"), this.tabs, this.strip);
    for (const [name, title, language] of COLUMNS) this.add(name, title, language);
    this.chooseStep(texts.trace.length);
  }

  add(name, title, language) {
    const lines = name === "step" ? this.texts.scheduled : this.texts[name];
    if (!lines.length) return;
    const code = h("div", { class: `code ${language}`, tabindex: 0, "aria-label": title });
    const count = h("small", {}, `${lines.length} lines`);
    const section = h("section", { class: "column", "data-stage": name }, h("h4", {}, title, " ", count), code);
    const column = { name, language, code, count, lines, marked: new Set(), section };
    this.columns.set(name, column);
    this.strip.append(section);
    this.tabs.append(h("button", { "data-stage": name, onclick: () => this.reveal(name) }, title));
    column.list = new VirtualList(code, { count: 0, height: LINE_HEIGHT, row: (i) => this.line(column, i) });
    this.setLines(column, lines);
    code.addEventListener("mouseover", (event) => this.hover(column, event));
    code.addEventListener("mouseleave", () => this.light(this.pinned ?? new Map()));
    code.addEventListener("click", (event) => this.click(column, event));
    code.addEventListener("keydown", (event) => this.key(column, event));
  }

  setLines(column, lines, marked = new Set()) {
    Object.assign(column, { lines, marked });
    const origins = this.texts[`${column.name}_lines`];
    if (origins) this.links.addCode(column.name, origins);
    else this.links.addText(column.name, column.name === "trace" ? traceSubjects(lines) : subjects(lines));
    const longest = lines.reduce((most, line) => Math.max(most, line.length), 0);
    column.list.resize(lines.length, `${longest + 8}ch`);
    column.count.textContent = `${lines.length} lines`;
  }

  line(column, index) {
    const parts = tokens(column.lines[index], column.language).map(([kind, text]) =>
      kind ? h("span", { class: kind }, text) : text);
    const chosen = column.name === "trace" && index === this.step - 1;
    return h("div", { class: this.classes(column, index, chosen) },
      h("span", { class: "gutter" }, index + 1), h("span", { class: "text" }, parts));
  }

  classes(column, index, chosen = false) {
    const lit = this.lit.get(column.name)?.has(index) ? "lit" : "";
    return `line ${lit} ${column.marked.has(index) ? "marked" : ""} ${chosen ? "chosen" : ""}`;
  }

  hover(column, event) {
    const index = event.target.closest(".line")?.dataset.index;
    if (index !== undefined) this.light(this.links.of(column.name, Number(index)));
  }

  light(lit) {
    this.lit = lit;
    for (const column of this.columns.values()) {
      for (const [index, element] of column.list.rows) {
        element.className = this.classes(column, index, column.name === "trace" && index === this.step - 1);
      }
    }
  }

  click(column, event) {
    const index = event.target.closest(".line")?.dataset.index;
    if (index === undefined) return;
    if (column.name === "trace") this.chooseStep(Number(index) + 1);
    this.pinned = this.links.of(column.name, Number(index));
    this.light(this.pinned);
    for (const other of this.columns.values()) {
      const first = Math.min(...(this.pinned.get(other.name) ?? []));
      if (other !== column && Number.isFinite(first)) other.list.show(first);
    }
    this.light(this.pinned);
  }

  key(column, event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (column.name !== "trace" || !step) return;
    event.preventDefault();
    this.chooseStep(Math.max(1, Math.min(this.texts.trace.length, this.step + step)));
    column.list.show(this.step - 1);
  }

  // Show the loops after a step of the trace, what it changed marked; 0 is before all.
  chooseStep(step) {
    this.step = step;
    const { steps, scheduled, lowered, trace } = this.texts;
    const column = this.columns.get("step");
    const before = step > 1 ? steps[step - 2] : lowered;
    const after = step === steps.length || !steps[step - 1] ? scheduled : steps[step - 1];
    this.setLines(column, after, step ? newLines(before, after) : new Set());
    column.section.querySelector("h4").firstChild.textContent =
      trace.length ? `Loops after step ${step} of ${trace.length}` : "Scheduled loops";
    this.light(new Map());
    const first = Math.min(...column.marked);
    if (Number.isFinite(first) && step < steps.length) column.list.show(first);
  }

  reveal(name) {
    const { section, code } = this.columns.get(name);
    this.strip.scrollTo({ left: section.offsetLeft - this.strip.offsetLeft, behavior: "instant" });
    section.scrollIntoView({ block: "nearest", inline: "start" });
    for (const button of this.tabs.children) button.setAttribute("aria-pressed", button.dataset.stage === name);
    code.focus({ preventScroll: true });
  }
}
