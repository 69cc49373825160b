// The graph before and after each pass, with the difference marked.

import { h } from "./element.js";
import { ms } from "./format.js";
import { describe, zoomButtons } from "./graph_page.js";
import { graphDifference } from "./graph_units.js";
import { GraphView } from "./graph_view.js";

export function passesPage(data, argument) {
  const runs = data.passes.map((pass, number) => ({ ...pass, number, from: number ? data.passes[number - 1].graph : 0 }));
  const changed = runs.filter((pass) => pass.changed);
  const telling = changed.find((pass) => words(data, pass)) ?? changed[0] ?? runs[0];
  const chosen = argument === undefined ? telling : runs[Number(argument)];
  const list = h("nav", { class: "pass-list", "aria-label": "Passes" }, runs.map((pass) => h("a", {
    href: `#passes/${pass.number}`, title: pass.what, class: pass.changed ? "changed" : "same",
    "aria-current": pass === chosen ? "page" : null,
  }, h("span", {}, pass.name), h("small", {}, pass.changed ? count(data, pass) : ""))));
  requestAnimationFrame(() => list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" }));
  return h("section", { class: "passes-page" }, list,
    chosen ? difference(data, chosen) : h("p", { class: "wait" }, "No pass was run."));
}

function count(data, pass) {
  const nodes = (number) => data.graphs[number].nodes.length;
  const groups = data.graphs[pass.graph].groups.length;
  const fused = groups && !data.graphs[pass.from].groups.length ? `, ${groups} kernels` : "";
  return `${nodes(pass.from)} → ${nodes(pass.graph)}${fused}`;
}

function difference(data, pass) {
  const [before, after] = [data.graphs[pass.from], data.graphs[pass.graph]];
  const found = graphDifference(data, before, after);
  const detail = h("aside", { class: "detail" });
  const pick = (unit) => detail.replaceChildren(...describe(data, unit));
  const views = [
    new GraphView(data, before, { marks: found.before, pick }),
    new GraphView(data, after, { marks: found.after, fused: found.fused, pick }),
  ];
  let at = -1;
  const next = (step) => {
    at += step;
    for (const view of views) {
      const marked = view.units.flatMap((unit, i) => (unit.mark ? [i] : []));
      if (marked.length) view.show(marked[((at % marked.length) + marked.length) % marked.length]);
    }
  };
  requestAnimationFrame(() => {
    views.forEach((view) => view.fit());
    next(1);
  });
  return h("div", { class: "pass" },
    h("h2", {}, pass.name, h("small", {}, ms(pass.ms))),
    h("p", {}, pass.what, " ", h("span", { class: "quiet" }, pass.changed ? words(data, pass) || "Only names or constants changed." : "It changed nothing.")),
    h("div", { class: "tools" }, zoomButtons(...views),
      h("span", { class: "buttons" },
        h("button", { onclick: () => next(-1) }, "← difference"), h("button", { onclick: () => next(1) }, "difference →"))),
    h("div", { class: "before-after" },
      h("div", {}, h("h4", {}, "Before"), views[0].element),
      h("div", {}, h("h4", {}, "After"), views[1].element)),
    detail);
}

// What a pass did to the operators, "" for nothing.
function words(data, pass) {
  const { before, after, fused } = graphDifference(data, data.graphs[pass.from], data.graphs[pass.graph]);
  const number = (marks, word) => [...marks.values()].filter((mark) => mark === word).length;
  const parts = [
    [number(before, "removed"), "removed"], [number(after, "added"), "added"],
    [number(after, "changed"), "changed"], [fused.size, `${fused.size === 1 ? "kernel" : "kernels"} made`],
  ];
  const found = parts.flatMap(([n, word]) => (n ? [`${n.toLocaleString("en")} ${word}`] : []));
  return found.length ? `${found.join(", ")}.` : "";
}
