// Every pair of operators that was not fused, and why; alike ones together.

import { h } from "./element.js";
import { plural } from "./format.js";

const SHOWN = 30;

export function fusionPage(data) {
  const reasons = new Map();
  for (const pair of data.unfused) {
    if (!reasons.has(pair.reason)) reasons.set(pair.reason, []);
    reasons.get(pair.reason).push(pair);
  }
  const sorted = [...reasons].sort(([, a], [, b]) => b.length - a.length);
  const most = sorted[0]?.[1].length ?? 1;
  const list = h("div", { class: "reasons" });
  const search = h("input", { type: "search", placeholder: "Search pairs and reasons", "aria-label": "Search pairs", oninput: () => update() });
  function update() {
    const word = search.value.toLowerCase();
    list.replaceChildren(...sorted.flatMap(([reason, pairs]) => {
      const matching = reason.toLowerCase().includes(word) ? pairs : pairs.filter((p) => `${p.producer} ${p.consumer}`.toLowerCase().includes(word));
      return matching.length ? [group(data, reason, matching, most)] : [];
    }));
  }
  update();
  const kernels = data.graphs.at(-1).groups.filter((g) => g.step >= 0);
  const operators = kernels.reduce((sum, g) => sum + g.nodes.length, 0);
  return h("section", {},
    h("p", {}, `${plural(operators, "operator")} became ${plural(kernels.length, "kernel call")}; ${plural(data.unfused.length, "pair")} stayed apart.`),
    h("div", { class: "tools" }, search), list);
}

function group(data, reason, pairs, most) {
  const rows = pairs.slice(0, SHOWN).map((pair) => h("li", {}, end(data, pair.producer, pair.from), " → ", end(data, pair.consumer, pair.to)));
  const more = pairs.length - rows.length;
  return h("details", { class: "reason" },
    h("summary", {}, h("span", { class: "bar" }, h("i", { class: "least", style: `width:${(100 * pairs.length) / most}%` })),
      h("b", {}, pairs.length), " ", reason),
    h("ul", {}, rows, more > 0 ? h("li", { class: "quiet" }, `and ${more} more`) : null));
}

function end(data, label, step) {
  const [op, name] = label.split(/ (.*)/);
  const text = [h("b", {}, op), h("span", { class: "quiet" }, ` ${name ?? ""}`)];
  return step >= 0 ? h("a", { href: `#kernel/${data.steps[step].kernel}`, title: `step ${step}` }, text) : h("span", {}, text);
}
