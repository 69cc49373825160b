// When each step runs; steps that run side by side are above each other.

import { h, svg } from "./element.js";
import { kindOf, ms } from "./format.js";

const LANE = 64;
const AXIS = 24;

export function timelinePage(data) {
  const events = data.timeline;
  const end = Math.max(...events.map((e) => e.ts + e.dur), 1e-9);
  const lanes = Math.max(...events.map((e) => e.tid), 0) + 1;
  const height = lanes * LANE + AXIS + 6;
  let zoom = 1;
  const picture = svg("svg", { class: "timeline", height });
  const box = h("div", { class: "scroll-x", tabindex: 0, "aria-label": "timeline" }, picture);
  const readout = h("p", { class: "readout" }, "Point at a step; click to open its kernel.");

  function draw() {
    const width = Math.max(1, box.clientWidth - 2) * zoom;
    picture.setAttribute("width", width);
    const scale = width / end;
    const [left, right] = [box.scrollLeft - 200, box.scrollLeft + box.clientWidth + 200];
    const seen = events.filter((e) => (e.ts + e.dur) * scale >= left && e.ts * scale <= right);
    picture.replaceChildren(...ticks(end, scale, height), ...seen.map((e) => step(data, e, scale, readout)));
  }

  const change = (factor) => () => {
    const centre = (box.scrollLeft + box.clientWidth / 2) / zoom;
    zoom = Math.max(1, Math.min(400, zoom * factor));
    draw();
    box.scrollLeft = centre * zoom - box.clientWidth / 2;
    draw();
  };
  box.addEventListener("scroll", draw, { passive: true });
  new ResizeObserver(draw).observe(box);
  const title = data.model.measured ? "in the fastest run" : "at the roof: `tilewright profile --html` measures";
  return h("section", {},
    h("div", { class: "tools" },
      h("span", { class: "buttons" }, h("button", { onclick: change(1 / 2), "aria-label": "Shorter" }, "−"), h("button", { onclick: change(1 / 400) }, "Fit"), h("button", { onclick: change(2), "aria-label": "Longer" }, "+")),
      h("span", {}, h("b", {}, ms(end / 1e3)), h("span", { class: "quiet" }, ` ${title}`)),
      h("button", { class: "plain", onclick: () => save(events, data.model.name) }, "Save as Chrome trace")),
    box, readout, compilation(data.stages));
}

// Where compiling the model took its time.
function compilation(stages) {
  const rows = Object.entries(stages).sort(([, a], [, b]) => b - a);
  const most = rows[0]?.[1] ?? 1;
  return h("div", {}, h("h3", {}, "Compiling it took"), h("ul", { class: "spans" }, rows.map(([name, seconds]) => h("li", {},
    h("span", { class: "name" }, name), h("span", { class: "bar" }, h("i", { class: "least", style: `width:${(100 * seconds) / most}%` })),
    h("b", {}, ms(seconds * 1e3))))));
}

function step(data, event, scale, readout) {
  const kernel = data.steps[event.args.step].kernel;
  const width = Math.max(0.5, event.dur * scale - 1);
  const text = `step ${event.args.step} · ${event.name} · ${ms(event.dur / 1e3)} · ${event.args.nodes.join(", ")}`;
  const group = svg("g", {
    class: `step ${kindOf(event.name)}`, transform: `translate(${event.ts * scale} ${AXIS + event.tid * LANE})`,
    onmouseenter: () => (readout.textContent = text), onclick: () => (location.hash = `#kernel/${kernel}`),
  }, svg("title", {}, text), svg("rect", { width, height: LANE - 5, rx: Math.min(4, width / 3) }));
  const room = Math.floor((width - 10) / 7);
  if (room > 3) {
    const name = event.name.length > room ? `${event.name.slice(0, room - 1)}…` : event.name;
    group.append(svg("text", { x: 6, y: 22 }, name));
  }
  return group;
}

function ticks(end, scale, height) {
  const rough = 110 / scale;
  const power = 10 ** Math.floor(Math.log10(rough));
  const every = [1, 2, 5, 10].find((n) => n * power >= rough) * power;
  const found = [];
  for (let at = 0; at <= end; at += every) {
    const x = at * scale;
    found.push(svg("path", { class: "tick", d: `M${x},${AXIS - 6}V${height}` }), svg("text", { class: "tick", x: x + 3, y: 12 }, ms(at / 1e3)));
  }
  return found.slice(0, 2000);
}

function save(events, name) {
  const file = new Blob([JSON.stringify({ traceEvents: events })], { type: "application/json" });
  const link = h("a", { href: URL.createObjectURL(file), download: `${name}.trace.json` });
  link.click();
  URL.revokeObjectURL(link.href);
}
