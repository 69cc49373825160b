// A graph of the document as boxes and edges: a fused kernel is one box, and so is an operator.

// The units of a graph: `{ops: [row number], group}`, or `{port: name}` for an input or an output of
// the model, and edges `[from, to]` between them.
export function graphUnits(data, graph) {
  const units = graph.inputs.map((name) => ({ ops: [], group: null, port: name }));
  const unitAt = new Array(graph.nodes.length).fill(-1);
  const starts = new Map(graph.groups.map((group) => [group.nodes[0], group]));
  for (let position = 0; position < graph.nodes.length; position++) {
    if (unitAt[position] >= 0) continue;
    const group = starts.get(position);
    const members = group ? group.nodes : [position];
    members.forEach((i) => (unitAt[i] = units.length));
    units.push({ ops: members.map((i) => graph.nodes[i]), group: group ?? null });
  }
  graph.outputs.forEach((name) => units.push({ ops: [], group: null, port: name, reads: name }));
  return { units, edges: edgesOf(data, graph, unitAt, units) };
}

function edgesOf(data, graph, unitAt, units) {
  const producer = new Map(graph.inputs.map((name, i) => [name, i]));
  graph.nodes.forEach((number, position) => {
    for (const value of data.nodes[number][1]) producer.set(value, unitAt[position]);
  });
  const found = new Map();
  units.forEach((unit, to) => {
    const read = unit.ops.flatMap((number) => data.nodes[number][2]);
    for (const value of unit.reads ? [unit.reads] : read) {
      const from = producer.get(value);
      if (from !== undefined && from !== to) found.set(`${from} ${to}`, [from, to]);
    }
  });
  return [...found.values()].filter(([from, to]) => from < to);
}

// Which rows of two graphs differ: those that only one has. A changed one keeps its result's name.
export function graphDifference(data, before, after) {
  const had = new Set(before.nodes);
  const has = new Set(after.nodes);
  const removed = before.nodes.filter((n) => !has.has(n));
  const added = after.nodes.filter((n) => !had.has(n));
  const results = (numbers) => new Set(numbers.flatMap((n) => data.nodes[n][1]));
  const [gone, come] = [results(removed), results(added)];
  const changed = (numbers, others) =>
    new Set(numbers.filter((n) => data.nodes[n][1].some((value) => others.has(value))));
  const marks = (numbers, kept, word) =>
    new Map(numbers.map((n) => [n, kept.has(n) ? "changed" : word]));
  const groups = (graph) => new Set(graph.groups.map((g) => g.name));
  const fused = [...groups(after)].filter((name) => !groups(before).has(name));
  return {
    before: marks(removed, changed(removed, come), "removed"),
    after: marks(added, changed(added, gone), "added"),
    fused: new Set(fused),
  };
}
