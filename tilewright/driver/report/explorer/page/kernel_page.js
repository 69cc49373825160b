// One kernel: why it is scheduled as it is, and its way from tensor expression to assembly.

import { codeColumns } from "./code_columns.js";
import { readText } from "./data.js";
import { h } from "./element.js";
import { bytes, count, ms, percent, plural, ratio } from "./format.js";
import { bar } from "./kernels_page.js";

const SHOWN_PLACES = 6;

export function kernelPage(data, argument) {
  const number = Number(argument);
  const kernel = data.kernels[number];
  if (!kernel) return h("p", { class: "wait" }, "There is no such kernel.");
  const code = h("div", { class: "columns-place" }, h("p", { class: "wait" }, "Expanding…"));
  readText(kernel.text).then(
    (texts) => code.replaceChildren(codeColumns(texts)),
    (error) => code.replaceChildren(h("p", { class: "wait" }, `Its texts cannot be read: ${error}`)),
  );
  return h("section", { class: "kernel-page" },
    h("p", { class: "path" }, h("a", { href: "#kernels" }, "Kernels"), " / ", beside(data, number)),
    h("h2", {}, kernel.name),
    facts(kernel),
    h("div", { class: "cards" }, schedule(kernel), places(data, kernel), neighbours(data, kernel)),
    code);
}

function beside(data, number) {
  const link = (to, text) => (data.kernels[to] ? h("a", { href: `#kernel/${to}` }, text) : null);
  return h("span", {}, link(number - 1, "← previous "), `${number + 1} of ${data.kernels.length}`, link(number + 1, " next →"));
}

function facts(kernel) {
  const longest = Math.max(kernel.min_ms ?? 0, kernel.least_ms ?? 0, 1e-12);
  const rows = [
    ...(kernel.min_ms === null ? [] : [["measured", ms(kernel.min_ms)]]),
    ["at the roof", `${ms(kernel.least_ms)}${kernel.bound ? `, by ${kernel.bound}` : ""}`],
    ...(kernel.of_roof === null ? [] : [["of roof", percent(kernel.of_roof)]]),
    ["calls", kernel.steps.length],
    ["flops a call", count(kernel.flops)],
    ["bytes a call", bytes(kernel.bytes)],
  ];
  return h("div", {},
    h("div", { class: "wide-bar" }, bar(kernel, longest)),
    h("dl", { class: "facts" }, rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))));
}

function schedule(kernel) {
  return h("article", { class: "card", id: "why" },
    h("h3", {}, "Why this schedule"),
    h("p", {}, h("b", {}, kernel.rule), kernel.why ? ` — ${kernel.why}` : ""),
    h("ul", {}, kernel.decisions.map((text) => h("li", {}, text))),
    secondBest(kernel.choices),
    kernel.choices.length
      ? h("details", {}, h("summary", {}, plural(kernel.choices.length, "choice")),
        h("ul", { class: "choices" }, kernel.choices.map(choice)))
      : null);
}

// The decision whose second best option is the nearest to the one taken.
function secondBest(choices) {
  const known = choices.filter((c) => c.cost && c.second_cost);
  if (!known.length) {
    return h("p", { class: "quiet" }, "The rule follows from the loops’ structure; nothing estimates what else would cost.");
  }
  const nearest = known.reduce((a, b) => (b.second_cost / b.cost < a.second_cost / a.cost ? b : a));
  return h("p", { class: "second" }, "Second best: ", h("code", {}, `${nearest.name} = ${nearest.second}`),
    ` instead of ${nearest.taken}, by the ${nearest.by_rule ? "rule’s estimate" : "tuner’s performance model"} `, h("b", {}, ratio(nearest.second_cost / nearest.cost)), " the cost.");
}

function choice(c) {
  const cost = c.cost && c.second_cost ? `; second best ${c.second}, ${ratio(c.second_cost / c.cost)}` : "";
  const others = c.others.length > 8 ? `${c.others.slice(0, 8).join(", ")}, …` : c.others.join(", ");
  return h("li", {}, h("code", {}, `${c.name} = ${c.taken}`), h("span", { class: "quiet" }, ` not ${others}${cost}`));
}

function places(data, kernel) {
  const rows = kernel.steps.slice(0, SHOWN_PLACES).map((step) => h("li", {},
    h("a", { href: `#graph/${step}` }, `step ${step}`), " ", data.steps[step].nodes.join(", ")));
  const more = kernel.steps.length - rows.length;
  return h("article", { class: "card" }, h("h3", {}, "What it computes"),
    h("ul", {}, rows, more > 0 ? h("li", { class: "quiet" }, `and at ${plural(more, "more place")}`) : null));
}

function neighbours(data, kernel) {
  const own = new Set(kernel.steps);
  const reasons = new Map();
  for (const pair of data.unfused) {
    if (!own.has(pair.from) && !own.has(pair.to)) continue;
    const text = `${pair.producer.split(" ")[0]} → ${pair.consumer.split(" ")[0]}: ${pair.reason}`;
    reasons.set(text, (reasons.get(text) ?? 0) + 1);
  }
  if (!reasons.size) return null;
  return h("article", { class: "card" }, h("h3", {}, "Why its neighbours are apart"),
    h("ul", {}, [...reasons].map(([text, times]) => h("li", {}, text, times > 1 ? h("span", { class: "quiet" }, ` (${times} times)`) : null))));
}
