// Which lines of a kernel's texts belong together.
//
// Lines of loops, of the tensor expression and of the trace belong together by what they are about:
// a loop, or the data that they write. `split("mm.i", ...)` makes loops `mm.i.0` and `mm.i.1`, so a
// loop belongs to those whose names continue its own. Data belong to the stage of the tensor
// expression that they are named after: `conv.register` to `conv`, unless there is such a stage.
// Lines of LLVM and of assembly know their line of the finalized loops.

const SUBJECTS = [
  [/^\s*for ([\w.]+) in/, "loop"],
  [/^\s*block "([^"]+)"/, "data"],
  [/^\s*alloc ([\w.]+):/, "data"],
  [/^\s*(?:init )?(?:\{ )?([\w.]+)\[.*\] \+?= /, "data"],
  [/^\s+([\w.]+): \w+\[.*\] = \[/, "data"], // a stage of a tensor expression
  [/^\s*tile \S+ ([\w.]+)\[/, "data"],
];

// What lines are about: `[{name, kind}, ...]` of each.
export function subjects(lines) {
  const own = lines.map((line) => {
    for (const [pattern, kind] of SUBJECTS) {
      const match = pattern.exec(line);
      if (match) return [{ name: match[1], kind }];
    }
    return [];
  });
  return own;
}

// What the steps of a trace are about: every name that they mention.
export function traceSubjects(lines) {
  return lines.map((line) => [...line.matchAll(/"([^"]+)"/g)].flatMap(([, name]) => {
    const data = { name, kind: "data" };
    return name.includes(".") ? [data, { name, kind: "loop" }] : [data];
  }));
}

export class Links {
  // `base` is the column whose lines code comes from; `stages` are those of the tensor expression.
  constructor(base, stages = []) {
    this.base = base;
    this.stages = new Set(stages);
    this.subjects = new Map();
    this.origins = new Map();
  }

  addText(column, found) {
    this.subjects.set(column, found);
  }

  addCode(column, origins) {
    this.origins.set(column, origins);
  }

  related(a, b) {
    if (a.kind !== b.kind) return false;
    if (a.kind === "data") return this.stageOf(a.name) === this.stageOf(b.name);
    return a.name === b.name || a.name.startsWith(`${b.name}.`) || b.name.startsWith(`${a.name}.`);
  }

  // The stage that data is named after, or its own name.
  stageOf(name) {
    for (let end = name.length; end > 0; end = name.lastIndexOf(".", end - 1)) {
      if (this.stages.has(name.slice(0, end))) return name.slice(0, end);
    }
    return name;
  }

  // By column, the set of lines that belong to a line.
  of(column, index) {
    const found = new Map();
    const bases = this.basesOf(column, index);
    const wanted = this.wantedOf(column, index, bases);
    for (const [name, lines] of this.subjects) {
      const lit = lines.flatMap((own, i) =>
        own.some((s) => wanted.some((w) => this.related(s, w))) ? [i] : []);
      found.set(name, new Set(name === this.base && bases.size ? [...bases].map((n) => n - 1) : lit));
    }
    for (const [name, origins] of this.origins) {
      found.set(name, new Set(origins.flatMap((line, i) => (bases.has(line) ? [i] : []))));
    }
    found.get(column)?.add(index);
    return found;
  }

  // The lines of the base column that a line belongs to, counted from 1.
  basesOf(column, index) {
    if (this.origins.has(column)) {
      const line = this.origins.get(column)[index];
      return new Set(line ? [line] : []);
    }
    if (column === this.base) return new Set([index + 1]);
    const own = this.subjects.get(column)?.[index] ?? [];
    const lines = this.subjects.get(this.base) ?? [];
    return new Set(lines.flatMap((subject, i) =>
      subject.some((s) => own.some((o) => this.related(s, o))) ? [i + 1] : []));
  }

  wantedOf(column, index, bases) {
    if (!this.origins.has(column)) return this.subjects.get(column)?.[index] ?? [];
    return [...bases].flatMap((line) => this.subjects.get(this.base)[line - 1] ?? []);
  }
}
