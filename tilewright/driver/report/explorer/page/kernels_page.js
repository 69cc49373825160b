// All kernels: their time as bars, sorted and searched.

import { h } from "./element.js";
import { bytes, count, kindOf, ms, percent, plural } from "./format.js";
import { VirtualList } from "./virtual_list.js";

// Title, what it is sorted by, whether the largest comes first.
const COLUMNS = {
  name: ["Kernel", (k) => k.name, false],
  time: ["Time", (k) => k.time ?? -1, true],
  roof: ["Of roof", (k) => k.of_roof ?? k.least_ms ?? -1, false],
  bound: ["Bound by", (k) => k.bound ?? "", false],
  rule: ["Schedule", (k) => k.rule, false],
  calls: ["Calls", (k) => k.steps.length, true],
  flops: ["Flops", (k) => (typeof k.flops === "number" ? k.flops * k.steps.length : -1), true],
};

let sorting = { by: "time", down: true };

export function kernelsPage(data) {
  const kernels = data.kernels.map((k, number) => ({ ...k, number, time: k.min_ms ?? k.least_ms }));
  const total = kernels.reduce((sum, k) => sum + (k.time ?? 0), 0);
  const longest = Math.max(...kernels.map((k) => Math.max(k.time ?? 0, k.least_ms ?? 0)), 1e-12);
  let shown = kernels;
  const body = h("div", { class: "table-body", tabindex: 0, "aria-label": "kernels" });
  const head = h("div", { class: "table-row head" });
  const search = h("input", {
    type: "search", placeholder: "Search kernels, operators, schedules", "aria-label": "Search kernels",
    oninput: () => update(),
  });
  const found = h("output", {});
  const height = matchMedia("(max-width: 700px)").matches ? 62 : 40;
  const list = new VirtualList(body, {
    count: 0, height, row: (i) => row(shown[i], longest, total, data.model.measured),
  });
  body.addEventListener("keydown", (event) => moveFocus(event, list));

  function update() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    shown = kernels.filter((k) => words.every((word) => text(data, k).includes(word)));
    const [, key] = COLUMNS[sorting.by];
    const sign = sorting.down ? -1 : 1;
    shown.sort((a, b) => sign * compare(key(a), key(b)) || a.number - b.number);
    found.textContent = words.length ? plural(shown.length, "match").replace("matchs", "matches") : "";
    head.replaceChildren(...headings(() => update(), data.model.measured));
    list.resize(shown.length);
    body.scrollTop = 0;
  }

  update();
  return h("section", {}, summary(data, total), h("div", { class: "tools" }, search, found),
    h("div", { class: "table" }, head, body), legend(data.model.measured));
}

const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);

function headings(update, measured) {
  return Object.entries(COLUMNS).map(([name, [title, , down]]) => h("button", {
    class: name, "aria-pressed": sorting.by === name,
    onclick: () => {
      sorting = { by: name, down: sorting.by === name ? !sorting.down : down };
      update();
    },
  }, name === "roof" && !measured ? "At roof" : title, sorting.by === name ? h("span", { class: "arrow" }, sorting.down ? " ↓" : " ↑") : null));
}

function text(data, kernel) {
  kernel.searched ??= [
    kernel.name, kernel.rule, kernel.bound, ...kernel.steps.flatMap((s) => data.steps[s].nodes),
  ].join(" ").toLowerCase();
  return kernel.searched;
}

function row(kernel, longest, total, measured) {
  const calls = kernel.steps.length;
  return h("a", { class: `table-row kernel ${kindOf(kernel.name)}`, href: `#kernel/${kernel.number}` },
    h("span", { class: "name", title: kernel.name }, h("i", { class: "dot" }), kernel.name),
    h("span", { class: "time" }, bar(kernel, longest), h("b", {}, ms(kernel.time)),
      h("small", {}, percent(total ? (kernel.time ?? 0) / total : null))),
    h("span", { class: "roof" }, measured ? percent(kernel.of_roof) : ms(kernel.least_ms)),
    h("span", { class: "bound" }, kernel.bound ?? "–"),
    h("span", { class: "rule" }, kernel.rule),
    h("span", { class: "calls" }, `×${calls}`),
    h("span", { class: "flops" }, typeof kernel.flops === "number" ? count(kernel.flops * calls) : "symbolic"));
}

// The whole bar is the measured time; its solid part the least that the roof allows.
export function bar(kernel, longest) {
  const width = (value) => `${Math.max(0.4, (100 * (value ?? 0)) / longest)}%`;
  const measured = kernel.min_ms === null ? null : h("i", { class: "measured", style: `width:${width(kernel.min_ms)}` });
  const least = kernel.least_ms === null ? null : h("i", { class: "least", style: `width:${width(kernel.least_ms)}` });
  return h("span", { class: "bar" }, measured, least);
}

function summary(data, total) {
  const { totals, model, memory } = data;
  const facts = [
    [model.measured ? "measured" : "at the roof", ms(total || null)],
    ...(model.measured && totals.least_ms !== null ? [["of roof", percent(totals.least_ms / total)]] : []),
    ["kernel calls", totals.calls.toLocaleString("en")],
    ["distinct kernels", totals.kernels.toLocaleString("en")],
    ["arena", bytes(memory.arena)],
    ["weights", bytes(memory.weights)],
  ];
  const list = facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)));
  const symbolic = data.kernels.some((kernel) => typeof kernel.flops !== "number");
  const unknown = total || !symbolic ? null : h("p", { class: "legend" }, "Sizes are symbolic: --dim NAME=SIZE gives them values, and kernels times.");
  return h("div", {}, h("dl", { class: "facts" }, list), unknown);
}

function legend(measured) {
  const roof = [h("i", { class: "sample least" }), "least time the roofline allows"];
  const time = measured ? [h("i", { class: "sample measured" }), "measured time"] : [];
  return h("p", { class: "legend" }, time, roof,
    h("span", { class: "keys" }, h("kbd", {}, "/"), " search ", h("kbd", {}, "↑"), h("kbd", {}, "↓"), h("kbd", {}, "Enter"), " open ", h("kbd", {}, "1"), "–", h("kbd", {}, "6"), " views"));
}

function moveFocus(event, list) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const now = Number(document.activeElement?.dataset?.index ?? -1);
  const next = Math.max(0, Math.min(list.count - 1, now + step));
  list.show(next);
  list.rows.get(next)?.focus();
}
