// The document and the texts: in the page as deflated base64, or from the server of a live page.

async function inflate(base64) {
  const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

export function readDocument() {
  return inflate(document.getElementById("document").textContent);
}

const texts = new Map();

// The texts of a kernel by their name; each is expanded once.
export function readText(name) {
  if (!texts.has(name)) {
    const embedded = document.getElementById(name);
    const text = embedded ? inflate(embedded.textContent) : fetch(`texts/${name}`).then((r) => r.json());
    texts.set(name, text);
  }
  return texts.get(name);
}

// Where the page is served, load it anew when the model was built again.
export async function followServer() {
  const read = async () => (await fetch("version")).text();
  const shown = await read();
  setInterval(async () => {
    const now = await read().catch(() => shown); // the server may have ended
    if (now !== shown) location.reload();
  }, 2000);
}
