// The document and the texts: in the page as deflated base64, or from the server of a live page.

async function inflate(base64) {
  const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

export function readDocument() {
  return inflate(document.getElementById("document").textContent);
}

// The script runs before the texts behind it are read.
const complete = document.readyState === "loading"
  ? new Promise((done) => document.addEventListener("DOMContentLoaded", done))
  : Promise.resolve();
const texts = new Map();

// The texts of a kernel by their name; each is expanded once.
export function readText(name) {
  if (!texts.has(name)) texts.set(name, complete.then(() => expand(name)));
  return texts.get(name);
}

function expand(name) {
  const embedded = document.getElementById(name);
  return embedded ? inflate(embedded.textContent) : fetch(`texts/${name}`).then((answer) => answer.json());
}

const PAUSE = 2000;

// Where the page is served, load it anew when the model was built again; `tell` of what hinders it.
export async function followServer(tell) {
  const read = async () => (await fetch("version")).json();
  let now = await read();
  for (const shown = now.version; now.version === shown;) {
    await new Promise((done) => setTimeout(done, PAUSE));
    now = await read().catch(() => ({ version: shown, problem: "The server has ended." }));
    tell(now.problem);
  }
  location.reload();
}
