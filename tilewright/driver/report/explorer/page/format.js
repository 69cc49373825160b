// Numbers as people read them, and the kinds of operators.

export function ms(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 100) return `${value.toFixed(0)} ms`;
  if (value >= 1) return `${value.toFixed(2)} ms`;
  return value >= 1e-3 ? `${(value * 1e3).toPrecision(3)} µs` : `${(value * 1e6).toFixed(0)} ns`;
}

const SIZES = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]];
const COUNTS = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

function scaled(value, units, none) {
  if (typeof value !== "number") return value ?? "–"; // a formula of symbolic sizes
  const unit = units.find(([size]) => value >= size);
  return unit ? `${(value / unit[0]).toPrecision(3)} ${unit[1]}` : `${value}${none}`;
}

export const bytes = (value) => scaled(value, SIZES, " B");
export const count = (value) => scaled(value, COUNTS, "");

export function percent(value) {
  return value === null || value === undefined ? "–" : `${(100 * value).toFixed(value < 0.1 ? 1 : 0)}%`;
}

export function ratio(value) {
  return `${value.toFixed(value < 1.1 ? 3 : 2)}×`;
}

export function plural(number, word) {
  return `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
}

const KINDS = [
  ["product", /matmul|conv|attention|einsum|gemm|lstm|gru|rnn|winograd|dot/],
  ["reduction", /softmax|norm|reduce|pool|mean|sum|arg|topk|cum/],
  ["movement", /transpose|reshape|concat|slice|gather|pad|expand|split|squeeze|scatter|tile|copy|im2col|resize/],
];

// Of an operator or a kernel's name: the kind that decides its colour.
export function kindOf(name) {
  return KINDS.find(([, words]) => words.test(name))?.[0] ?? "elementwise";
}
