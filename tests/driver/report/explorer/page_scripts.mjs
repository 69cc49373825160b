// What the page computes, tested without a browser: `PAGE=<folder> node --test page_scripts.mjs`.

import assert from "node:assert/strict";
import test from "node:test";

// Data addresses say that the text is a module, whatever the folder's package.json says.
const { readFileSync } = await import("node:fs");
const load = (name) => {
  const source = readFileSync(new URL(`${process.env.PAGE}/${name}`), "utf8");
  return import(`data:text/javascript,${encodeURIComponent(source)}`);
};
const { layout } = await load("layout.js");
const { newLines } = await load("line_diff.js");
const { Links, subjects, traceSubjects } = await load("links.js");
const { tokens } = await load("tokens.js");
const { graphDifference, graphUnits } = await load("graph_units.js");
const format = await load("format.js");

test("boxes of a layer do not overlap, and edges go down", () => {
  const boxes = Array.from({ length: 40 }, (_, i) => ({ width: 40 + (i % 5) * 20, height: 30 }));
  const edges = boxes.flatMap((_, i) => [i + 1, i + 2, i + 7].filter((to) => to < 40).map((to) => [i, to]));
  const { boxes: places, edges: drawn, width } = layout(boxes, edges);
  for (let a = 0; a < 40; a++) {
    assert(places[a].x >= 0 && places[a].x + boxes[a].width <= width);
    for (let b = 0; b < a; b++) {
      if (places[a].y !== places[b].y) continue;
      const [left, right] = places[a].x < places[b].x ? [a, b] : [b, a];
      assert(places[left].x + boxes[left].width <= places[right].x + 1e-6);
    }
  }
  for (const { from, to, points } of drawn) {
    assert(places[from].y < places[to].y);
    assert.deepEqual(points.map(([, y]) => y), points.map(([, y]) => y).toSorted((a, b) => a - b));
  }
});

test("a chain of thousands is laid out at once", () => {
  const boxes = Array.from({ length: 5000 }, () => ({ width: 80, height: 30 }));
  const edges = boxes.slice(1).map((_, i) => [i, i + 1]);
  edges.push([0, 4999]);
  const start = performance.now();
  assert.equal(layout(boxes, edges).boxes.length, 5000);
  assert(performance.now() - start < 10_000);
});

test("new lines of a text", () => {
  assert.deepEqual(newLines(["a", "b", "c"], ["a", "x", "b", "c"]), new Set([1]));
  assert.deepEqual(newLines(["a"], ["a"]), new Set());
  assert.deepEqual(newLines([], ["a"]), new Set([0]));
  assert.deepEqual(newLines(["a", "b", "a", "b"], ["b", "a", "y", "b"]), new Set([2]));
});

test("lines belong together by what they are about", () => {
  const links = new Links("finalized");
  links.addText("tensor", subjects(["tensor @mm(A: f32[4]) -> C {", "  C: f32[4] = [i] A[i]", "}"]));
  links.addText("trace", traceSubjects(['split("mm.i", [?, 4])', 'vectorize("mm.j")']));
  links.addText("finalized", subjects(["func @mm() {", "  for mm.i.0 in serial(2) {", "    C[mm.i.0] = A[mm.i.0]", "  }", "}"]));
  links.addCode("assembly", [0, 2, 3, 3]);
  const ofLoop = links.of("finalized", 1);
  assert.deepEqual(ofLoop.get("trace"), new Set([0]));
  assert.deepEqual(ofLoop.get("assembly"), new Set([1]));
  assert.deepEqual(ofLoop.get("tensor"), new Set());
  const ofCode = links.of("assembly", 3);
  assert.deepEqual(ofCode.get("assembly"), new Set([2, 3]));
  assert.deepEqual(ofCode.get("finalized"), new Set([2]));
  assert.deepEqual(ofCode.get("tensor"), new Set([1]));
  assert.deepEqual(links.of("assembly", 0).get("finalized"), new Set());
});

test("data belong to the stage that they are named after", () => {
  const links = new Links("finalized", ["conv", "conv.padded"]);
  links.addText("trace", traceSubjects(['set_scope("conv.register", "register")', 'inline("conv.padded")', 'fuse("conv.i", "conv.j")']));
  links.addText("finalized", subjects(["  conv[i] = 0.0", "  conv.padded[i] = x[i]"]));
  assert.deepEqual(links.of("finalized", 0).get("trace"), new Set([0, 2]));
  assert.deepEqual(links.of("finalized", 1).get("trace"), new Set([1]));
});

test("tokens are the whole line", () => {
  for (const [language, line] of [
    ["loops", "  for conv.i in parallel(8) { alloc T: f32[8] @register # note"],
    ["trace", 'split("conv.i", [?, 16])'],
    ["llvm", "  %t1 = load <16 x float>, ptr %p1, align 4 ; note"],
    ["assembly", "\tvfmadd231ps\t(%rdi,%rax,4){1to16}, %zmm1, %zmm0"],
  ]) {
    assert.equal(tokens(line, language).map(([, text]) => text).join(""), line);
  }
  assert.deepEqual(tokens("\tret", "assembly"), [["keyword", "\tret"]]);
});

const NODES = [
  ["relu", ["a"], ["x"], "f32[4]", "", "", []],
  ["add", ["b"], ["a", "x"], "f32[4]", "", "", []],
  ["mul", ["b"], ["a"], "f32[4]", "", "", []],
];
const graph = (nodes, groups = []) => ({ inputs: ["x"], outputs: ["b"], nodes, groups });

test("a group is one box between input and output", () => {
  const grouped = graphUnits({ nodes: NODES }, graph([0, 1], [{ name: "b", step: 0, nodes: [0, 1] }]));
  assert.deepEqual(grouped.edges, [[0, 1], [1, 2]]);
  const single = graphUnits({ nodes: NODES }, graph([0, 1]));
  assert.deepEqual(single.edges.toSorted(), [[0, 1], [0, 2], [1, 2], [2, 3]]);
});

test("a changed operator keeps the name of its result", () => {
  const found = graphDifference({ nodes: NODES }, graph([0, 1]), graph([0, 2]));
  assert.deepEqual([...found.before, ...found.after], [[1, "changed"], [2, "changed"]]);
  const gone = graphDifference({ nodes: NODES }, graph([0, 1]), graph([1]));
  assert.deepEqual([...gone.before], [[0, "removed"]]);
});

test("numbers as people read them", () => {
  assert.deepEqual([format.ms(12.345), format.ms(0.0123), format.ms(null)], ["12.35 ms", "12.3 µs", "–"]);
  assert.deepEqual([format.bytes(2_500_000), format.bytes(10), format.bytes("4 * N")], ["2.50 MB", "10 B", "4 * N"]);
  assert.equal(format.kindOf("transpose_conv_add"), "product");
});
