// A drawing of a graph, in a box that scrolls; only what is in sight is in the page.

import { h, svg } from "./element.js";
import { kindOf } from "./format.js";
import { graphUnits } from "./graph_units.js";
import { layout } from "./layout.js";

const LINE = 19;
const MAX_OPS = 8;
const CHARACTER = 7.1;
// Below this scale text cannot be read, and is left out.
const READABLE = 0.45;
const MARGIN = 300;

export class GraphView {
  // `marks`: classes by row number; `pick(unit)` is called for a box that is clicked.
  constructor(data, graph, { marks = new Map(), fused = new Set(), pick = () => {}, note = () => "" } = {}) {
    Object.assign(this, { data, graph, marks, fused, pick, note });
    const { units, edges } = graphUnits(data, graph);
    this.units = units.map((unit) => this.measured(unit));
    this.layout = layout(this.units, edges);
    this.scale = 1;
    this.picture = svg("svg", { class: "graph", role: "img", "aria-label": "graph" });
    this.element = h("div", { class: "graph-box", tabindex: 0 }, this.picture);
    this.element.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.fit()).observe(this.element);
  }

  measured(unit) {
    const names = unit.port ? [unit.port] : unit.ops.map((n) => this.data.nodes[n][0]);
    const lines = names.length > MAX_OPS ? [...names.slice(0, MAX_OPS - 1), `+ ${names.length - MAX_OPS + 1} more`] : names;
    const title = unit.group && unit.group.step >= 0 ? this.kernelTitle(unit.group.step) : "";
    const longest = Math.max(...lines.map((line) => line.length), title.length * 0.9);
    const own = unit.ops.map((n) => this.marks.get(n) ?? "");
    return {
      ...unit, lines, title,
      kind: kindOf(names.find((name) => kindOf(name) === "product") ?? names.find((name) => kindOf(name) !== "elementwise") ?? names[0]),
      mark: own.find((mark) => mark) ?? (unit.group && this.fused.has(unit.group.name) ? "fused" : ""),
      own,
      width: Math.max(64, Math.min(260, longest * CHARACTER + 24)),
      height: lines.length * LINE + (title ? 22 : 0) + 10,
    };
  }

  kernelTitle(step) {
    const name = this.data.kernels[this.data.steps[step].kernel].name;
    const text = `${step} · ${name}`;
    return text.length > 34 ? `${text.slice(0, 33)}…` : text;
  }

  // Scale so that the widest row is in sight, or a readable part of it.
  fit() {
    const room = this.element.clientWidth;
    if (!room || this.room === room) return;
    this.room = room;
    this.zoom(Math.max(0.7, Math.min(1, room / this.layout.width)));
    const first = this.layout.boxes[0];
    if (first) this.element.scrollLeft = first.x * this.scale - room / 2 + 60;
  }

  zoom(scale) {
    const centre = (this.element.scrollTop + this.element.clientHeight / 2) / this.scale;
    this.scale = Math.max(0.05, Math.min(2, scale));
    const width = this.layout.width * this.scale;
    this.picture.style.width = `${width}px`;
    this.picture.style.height = `${this.layout.height * this.scale}px`;
    this.picture.setAttribute("viewBox", `0 0 ${this.layout.width} ${this.layout.height}`);
    this.picture.style.marginInline = width < this.element.clientWidth ? "auto" : "0";
    this.element.scrollTop = centre * this.scale - this.element.clientHeight / 2;
    this.draw();
  }

  // Scroll to a box and light it.
  show(index) {
    const box = this.layout.boxes[index];
    if (!box) return;
    this.lit = index;
    this.element.scrollTop = box.y * this.scale - this.element.clientHeight / 3;
    this.element.scrollLeft = (box.x + this.units[index].width / 2) * this.scale - this.element.clientWidth / 2;
    this.draw();
  }

  draw() {
    const top = this.element.scrollTop / this.scale - MARGIN;
    const bottom = (this.element.scrollTop + this.element.clientHeight) / this.scale + MARGIN;
    const edges = this.layout.edges.filter((e) => e.points[0][1] < bottom && e.points.at(-1)[1] > top);
    const boxes = this.units.flatMap((unit, i) => {
      const { y } = this.layout.boxes[i];
      return y < bottom && y + unit.height > top ? [this.box(unit, i)] : [];
    });
    this.picture.replaceChildren(svg("g", {}, edges.map((e) => this.edge(e))), svg("g", {}, boxes));
  }

  edge({ from, to, points }) {
    const reason = this.note(this.units[from], this.units[to]);
    const far = points.length === 2 && points[1][1] - points[0][1] > 600;
    const path = svg("path", { d: far ? stubs(points) : curve(points), class: reason ? "edge why" : "edge" });
    if (!reason) return path;
    const [x, y] = middle(points);
    return svg("g", { class: "refusal" }, svg("title", {}, `Not fused: ${reason}`), path,
      svg("circle", { cx: x, cy: y, r: 4.5 }));
  }

  box(unit, index) {
    const { x, y } = this.layout.boxes[index];
    const grouped = unit.group && unit.group.step >= 0;
    const group = svg("g", {
      class: ["unit", unit.kind, grouped ? "kernel" : "", unit.port ? "port" : "", unit.mark, this.lit === index ? "lit" : ""].join(" "),
      transform: `translate(${x} ${y})`, tabindex: 0, role: "button", "data-unit": index,
      onclick: () => this.choose(index),
      onkeydown: (event) => event.key === "Enter" && this.choose(index),
    }, svg("title", {}, this.tooltip(unit)),
    svg("rect", { width: unit.width, height: unit.height, rx: 7 }));
    if (this.scale < READABLE) return group;
    const head = unit.title ? 22 : 0;
    if (head) group.append(svg("text", { x: 10, y: 16, class: "title" }, unit.title));
    const alone = !head && unit.lines.length === 1;
    const place = alone ? { x: unit.width / 2, "text-anchor": "middle" } : { x: 12 };
    unit.lines.forEach((line, i) => group.append(
      svg("text", { ...place, y: head + 18 + i * LINE, class: `op ${kindOf(line)} ${unit.own[i] ?? ""}` }, line)));
    return group;
  }

  choose(index) {
    this.lit = index;
    this.draw();
    if (!this.units[index].port) this.pick(this.units[index]);
  }

  tooltip(unit) {
    if (unit.port) return `${unit.reads ? "output" : "input"} ${unit.port}`;
    const [op, results, operands, type] = this.data.nodes[unit.ops.at(-1)];
    return unit.ops.length > 1 ? `${unit.ops.length} operators → ${type}` : `${results} = ${op}(${operands}) → ${type}`;
  }
}

function curve(points) {
  let path = `M${points[0]}`;
  for (let i = 1; i < points.length; i++) {
    const [[x0, y0], [x1, y1]] = [points[i - 1], points[i]];
    const bend = (y1 - y0) / 2;
    path += `C${x0},${y0 + bend} ${x1},${y1 - bend} ${x1},${y1}`;
  }
  return path;
}

// The two ends of an edge that would cross much of the graph.
function stubs([[x0, y0], [x1, y1]]) {
  return `M${x0},${y0}v26m-5,-6l5,6l5,-6M${x1},${y1 - 26}v26`;
}

function middle(points) {
  const [[x0, y0], [x1, y1]] = [points.at(-2), points.at(-1)];
  return [(x0 + x1) / 2, (y0 + y1) / 2];
}
