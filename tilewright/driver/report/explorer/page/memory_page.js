// The arena as a picture: steps from left to right, bytes from bottom to top, buffers with names.

import { h, svg } from "./element.js";
import { bytes, percent, plural } from "./format.js";

const HEIGHT = 460;

export function memoryPage(data) {
  const { memory, steps } = data;
  const head = h("dl", { class: "facts" }, [
    ["arena", bytes(memory.arena)], ["lower bound", bytes(memory.lower_bound)],
    ["over it", percent(memory.lower_bound ? memory.arena / memory.lower_bound - 1 : 0)],
    ["weights", bytes(memory.weights)], ["buffers", memory.buffers.length],
  ].map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
  if (memory.symbolic || !memory.buffers.length) {
    const why = memory.symbolic
      ? "Places depend on symbolic sizes, and are known when the model runs. Give sizes with --dim to see them."
      : "The model keeps nothing between its kernels.";
    return h("section", {}, head, h("p", { class: "wait" }, why));
  }
  let zoom = 1;
  let chosen = null;
  const picture = svg("svg", { class: "arena", height: HEIGHT });
  const box = h("div", { class: "scroll-x", tabindex: 0, "aria-label": "memory plan" }, picture);
  const readout = h("p", { class: "readout" }, "Point at a buffer. Steps run from left to right, bytes lie from bottom to top.");
  const search = h("input", { type: "search", placeholder: "Search buffers", "aria-label": "Search buffers", oninput: () => draw() });

  function draw() {
    const width = Math.max(1, box.clientWidth - 2) * zoom;
    picture.setAttribute("width", width);
    const scale = { x: width / Math.max(1, steps.length), y: (HEIGHT - 8) / memory.arena };
    const [left, right] = [box.scrollLeft - 200, box.scrollLeft + box.clientWidth + 200];
    const seen = memory.buffers.filter((b) => (b.last + 1) * scale.x >= left && b.first * scale.x <= right);
    const word = search.value.toLowerCase();
    picture.replaceChildren(...seen.map((b) => buffer(data, b, scale, {
      dim: word && !b.name.toLowerCase().includes(word), lit: chosen === b,
      point: () => (readout.replaceChildren(...words(data, b))),
      choose: () => {
        chosen = b;
        readout.replaceChildren(...words(data, b));
        draw();
      },
    })));
  }

  const change = (factor) => () => {
    const centre = (box.scrollLeft + box.clientWidth / 2) / zoom;
    zoom = Math.max(1, Math.min(200, zoom * factor));
    draw();
    box.scrollLeft = centre * zoom - box.clientWidth / 2;
    draw();
  };
  box.addEventListener("scroll", draw, { passive: true });
  new ResizeObserver(draw).observe(box);
  return h("section", {}, head,
    h("div", { class: "tools" }, search, h("span", { class: "buttons" },
      h("button", { onclick: change(1 / 2), "aria-label": "Narrower" }, "−"), h("button", { onclick: change(1 / 200) }, "Fit"), h("button", { onclick: change(2), "aria-label": "Wider" }, "+"))),
    box, readout, largest(memory));
}

function buffer(data, b, scale, { dim, lit, point, choose }) {
  const width = Math.max(1, (b.last + 1 - b.first) * scale.x - 1);
  const height = Math.max(1, b.size * scale.y - 1);
  const y = HEIGHT - 4 - (b.offset + b.size) * scale.y;
  const hue = (hash(b.name) * 47) % 360;
  const group = svg("g", {
    class: `buffer ${dim ? "dim" : ""} ${lit ? "lit" : ""}`, style: `--hue:${hue}`,
    transform: `translate(${b.first * scale.x} ${y})`, onmouseenter: point, onclick: choose,
  }, svg("title", {}, `${b.name}: ${bytes(b.size)}`), svg("rect", { width, height, rx: Math.min(3, width / 4) }));
  const room = Math.floor((width - 8) / 6.6);
  if (room > 3 && height > 15) {
    group.append(svg("text", { x: 5, y: Math.min(height / 2 + 4, 18) }, b.name.length > room ? `${b.name.slice(0, room - 1)}…` : b.name));
  }
  return group;
}

function words(data, b) {
  const at = (step) => (data.steps[step] ? h("a", { href: `#kernel/${data.steps[step].kernel}` }, `step ${step}`) : `step ${step}`);
  return [h("b", {}, b.name), ` ${bytes(b.size)} at ${b.offset.toLocaleString("en")}, alive from `, at(b.first), " to ", at(b.last)];
}

function largest(memory) {
  const sorted = memory.buffers.toSorted((a, b) => b.size - a.size).slice(0, 8);
  const most = sorted[0].size || 1;
  return h("div", {}, h("h3", {}, `The largest of ${plural(memory.buffers.length, "buffer")}`),
    h("ul", { class: "largest" }, sorted.map((b) => h("li", {},
      h("span", { class: "bar" }, h("i", { class: "least", style: `width:${(100 * b.size) / most}%` })),
      h("b", {}, bytes(b.size)), " ", b.name))));
}

function hash(text) {
  let value = 7;
  for (let i = 0; i < text.length; i++) value = (value * 31 + text.charCodeAt(i)) % 1009;
  return value;
}
