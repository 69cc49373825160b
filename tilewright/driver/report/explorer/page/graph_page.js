// The graph after all passes, with fused kernels as boxes.

import { h } from "./element.js";
import { ms, plural } from "./format.js";
import { GraphView } from "./graph_view.js";

export function graphPage(data, argument) {
  const graph = data.graphs.at(-1);
  const reasons = new Map(data.unfused.filter((p) => p.from >= 0 && p.to >= 0).map((p) => [`${p.from} ${p.to}`, p.reason]));
  const stepOf = (unit) => unit.group?.step ?? -1;
  const detail = h("aside", { class: "detail" }, h("p", { class: "quiet" }, "Choose a box to see what it computes. A dot on an edge says why its two ends were not fused."));
  const view = new GraphView(data, graph, {
    pick: (unit) => detail.replaceChildren(...describe(data, unit)),
    note: (from, to) => reasons.get(`${stepOf(from)} ${stepOf(to)}`) ?? "",
  });
  if (argument) {
    requestAnimationFrame(() => {
      view.fit();
      const index = view.units.findIndex((unit) => stepOf(unit) === Number(argument));
      view.show(index);
      if (index >= 0) view.choose(index);
    });
  }
  return h("section", { class: "graph-page" },
    h("div", { class: "tools" }, zoomButtons(view), h("span", { class: "quiet" }, plural(view.units.length, "box").replace("boxs", "boxes")), kinds()),
    h("div", { class: "with-detail" }, view.element, detail));
}

export function zoomButtons(...views) {
  const by = (factor) => () => views.forEach((view) => view.zoom(view.scale * factor));
  const fit = () => views.forEach((view) => view.zoom(view.element.clientWidth / view.layout.width));
  return h("span", { class: "buttons" },
    h("button", { onclick: by(1 / 1.3), "aria-label": "Smaller" }, "−"),
    h("button", { onclick: fit }, "Fit"),
    h("button", { onclick: by(1.3), "aria-label": "Larger" }, "+"));
}

function kinds() {
  return h("span", { class: "legend" }, ["product", "reduction", "movement", "elementwise"].map((kind) =>
    [h("i", { class: `dot ${kind}` }), kind]));
}

export function describe(data, unit) {
  const step = unit.group?.step ?? -1;
  const found = [];
  if (step >= 0) {
    const { kernel, min_ms, least_ms } = data.steps[step];
    found.push(h("h3", {}, h("a", { href: `#kernel/${kernel}` }, data.kernels[kernel].name)),
      h("p", {}, `step ${step}, ${ms(min_ms ?? least_ms)}${min_ms === null ? " at the roof" : ""}`));
  }
  found.push(h("ol", { class: "ops" }, unit.ops.map((number) => operator(data.nodes[number]))));
  const apart = data.unfused.filter((p) => step >= 0 && (p.from === step || p.to === step));
  if (apart.length) {
    found.push(h("h4", {}, "Not fused"), h("ul", {}, apart.map((p) => h("li", {},
      `${p.producer.split(" ")[0]} → ${p.consumer.split(" ")[0]}: ${p.reason}`))));
  }
  return found;
}

function operator([op, results, operands, type, attributes, source, weights]) {
  return h("li", {}, h("b", {}, op), h("code", {}, ` ${type}`),
    h("div", { class: "quiet" }, `${results.join(", ")} ← ${operands.join(", ") || "nothing"}`),
    attributes ? h("div", { class: "quiet" }, attributes) : null,
    weights.length ? h("div", { class: "quiet" }, `weights ${weights.join(", ")}`) : null,
    source ? h("div", { class: "quiet" }, `from ${source}`) : null);
}
