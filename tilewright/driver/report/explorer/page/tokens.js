// Source text → coloured pieces, by language.

const LANGUAGES = {
  loops: [
    ["comment", /#.*/],
    ["string", /"[^"]*"/],
    ["parallel", /\b(?:parallel|grid|thread|warp|vectorize|unroll|allreduce)\b/],
    ["keyword", /\b(?:func|tensor|for|in|serial|block|reads|writes|init|where|alloc|layout|pack|if|else|seq|tile|using|out|barrier|commit|await)\b/],
    ["type", /\b(?:[fiu](?:4|8|16|32|64)|bf16|bool|f8\w+)\b/],
    ["scope", /@\w+/],
    ["number", /\b\d[\w.]*\b/],
    ["name", /[A-Za-z_][\w.]*/],
  ],
  trace: [
    ["string", /"[^"]*"/],
    ["keyword", /^\w+/],
    ["number", /\b\d+\b|\?/],
  ],
  llvm: [
    ["comment", /;.*/],
    ["label", /^[\w.]+:/],
    ["string", /"[^"]*"/],
    ["register", /%[\w.]+/],
    ["scope", /@[\w.]+|![\w.]+/],
    ["type", /\b(?:i\d+|float|double|half|bfloat|ptr|void|x86_amx)\b/],
    ["keyword", /\b(?:define|declare|ret|br|phi|load|store|call|getelementptr|icmp|fcmp|select|alloca|switch|atomicrmw|fence|shufflevector|insertelement|extractelement|[sz]ext|trunc|bitcast|f?add|f?sub|f?mul|[su]div|fdiv|[su]rem|and|or|xor|shl|[la]shr|fneg)\b/],
    ["number", /\b(?:0x)?[\dA-Fa-f]+\b/],
  ],
  assembly: [
    ["comment", /(?:#|\/\/).*/],
    ["label", /^[^\s:]+:/],
    ["directive", /^\s*\.\w+/],
    ["keyword", /^\s+[a-z][\w.]*/],
    ["register", /%\w+|\b[wxvqdsz]\d+\b/],
    ["number", /[$#]-?(?:0x)?\w+|\b-?\d+\b/],
  ],
};

const COMPILED = new Map();

function compiled(language) {
  if (!COMPILED.has(language)) {
    const rules = LANGUAGES[language];
    const source = rules.map(([, pattern]) => `(${pattern.source})`).join("|");
    COMPILED.set(language, [new RegExp(source, "g"), rules.map(([kind]) => kind)]);
  }
  return COMPILED.get(language);
}

// `[[kind, text], ...]`; the kind of plain text is "".
export function tokens(line, language) {
  const [pattern, kinds] = compiled(language);
  const found = [];
  let end = 0;
  for (const match of line.matchAll(pattern)) {
    if (match.index > end) found.push(["", line.slice(end, match.index)]);
    found.push([kinds[match.slice(1).findIndex((part) => part !== undefined)], match[0]]);
    end = match.index + match[0].length;
  }
  if (end < line.length) found.push(["", line.slice(end)]);
  return found;
}
