// A graph in layers from top to bottom (after Sugiyama): boxes with sizes in, their places out.
//
// layout([{width, height}], [[from, to]]) = {width, height, boxes: [{x, y}], edges: [{from, to, points}]}
// An edge over several layers bends around the boxes between them; a very long one ends in stubs.

const GAP_X = 28;
const GAP_Y = 44;
// Longer edges are not led through the layers.
const MAX_SPAN = 24;
const SWEEPS = 6;

export function layout(boxes, edges) {
  const layerOf = layers(boxes.length, edges);
  const nodes = boxes.map((box, i) => ({ ...box, layer: layerOf[i], up: [], down: [] }));
  const routes = edges.map(([from, to]) => route(nodes, from, to));
  const rows = rowsOf(nodes);
  order(rows);
  placeX(rows);
  const height = placeY(rows);
  const left = Math.min(...nodes.map((n) => n.x - n.width / 2), 0) - GAP_X;
  const right = Math.max(...nodes.map((n) => n.x + n.width / 2), 0) + GAP_X;
  nodes.forEach((n) => (n.x -= left));
  return {
    width: right - left,
    height,
    boxes: nodes.slice(0, boxes.length).map((n) => ({ x: n.x - n.width / 2, y: n.y })),
    edges: routes.map((path, i) => ({ from: edges[i][0], to: edges[i][1], points: points(path) })),
  };
}

// The longest way from a source to each node; a source lies just above what reads it first.
function layers(count, edges) {
  const after = Array.from({ length: count }, () => []);
  const waiting = new Uint32Array(count);
  for (const [from, to] of edges) {
    after[from].push(to);
    waiting[to]++;
  }
  const found = new Int32Array(count);
  const ready = [...waiting.keys()].filter((i) => !waiting[i]);
  const sources = new Set(ready);
  for (let next = 0; next < ready.length; next++) {
    for (const to of after[ready[next]]) {
      found[to] = Math.max(found[to], found[ready[next]] + 1);
      if (!--waiting[to]) ready.push(to);
    }
  }
  for (const i of sources) {
    if (after[i].length) found[i] = Math.min(...after[i].map((to) => found[to])) - 1;
  }
  return found;
}

// The nodes that an edge goes through, bends included.
function route(nodes, from, to) {
  const path = [nodes[from]];
  const span = nodes[to].layer - nodes[from].layer;
  for (let layer = nodes[from].layer + 1; span <= MAX_SPAN && layer < nodes[to].layer; layer++) {
    path.push({ width: 12, height: 0, layer, up: [], down: [], bend: true });
    nodes.push(path.at(-1));
  }
  path.push(nodes[to]);
  if (span > MAX_SPAN) return path;
  for (let i = 1; i < path.length; i++) {
    path[i - 1].down.push(path[i]);
    path[i].up.push(path[i - 1]);
  }
  return path;
}

function rowsOf(nodes) {
  const rows = [];
  for (const node of nodes) (rows[node.layer] ??= []).push(node);
  return Array.from(rows, (row) => row ?? []);
}

// Put each node near the middle of its neighbours, from above and from below in turn.
function order(rows) {
  rows.forEach((row) => row.forEach((node, i) => (node.rank = i)));
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    for (const row of down ? rows : rows.toReversed()) {
      if (row.length < 2) continue;
      for (const node of row) {
        const near = down ? node.up : node.down;
        node.key = near.length ? near.reduce((sum, n) => sum + n.rank, 0) / near.length : node.rank;
      }
      row.sort((a, b) => a.key - b.key);
      row.forEach((node, i) => (node.rank = i));
    }
  }
}

function placeX(rows) {
  for (const row of rows) {
    const whole = row.reduce((sum, n) => sum + n.width + GAP_X, -GAP_X);
    let x = -whole / 2;
    for (const node of row) {
      node.x = x + node.width / 2;
      x += node.width + GAP_X;
    }
  }
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    for (const row of down ? rows : rows.toReversed()) {
      for (const node of row) {
        const near = down ? node.up : node.down;
        if (near.length) node.x = near.reduce((sum, n) => sum + n.x, 0) / near.length;
      }
      separate(row);
    }
  }
}

// Move the nodes of a row apart as far as needed, around where they were.
function separate(row) {
  const wanted = row.map((n) => n.x);
  for (let i = 1; i < row.length; i++) {
    const least = row[i - 1].x + (row[i - 1].width + row[i].width) / 2 + GAP_X;
    row[i].x = Math.max(row[i].x, least);
  }
  const shift = row.reduce((sum, n, i) => sum + n.x - wanted[i], 0) / (row.length || 1);
  row.forEach((n) => (n.x -= shift));
}

function placeY(rows) {
  let y = GAP_Y / 2;
  for (const row of rows) {
    const height = Math.max(0, ...row.map((n) => n.height));
    for (const node of row) {
      node.y = y + (node.bend ? height / 2 : 0);
    }
    y += height + GAP_Y;
  }
  return y;
}

function points(path) {
  return path.map((n, i) => [n.x, i === 0 ? n.y + n.height : n.y]);
}
