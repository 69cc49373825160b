// The page: reads the document, shows one view at a time by the address after `#`.

import { followServer, readDocument } from "./data.js";
import { h } from "./element.js";
import { fusionPage } from "./fusion_page.js";
import { graphPage } from "./graph_page.js";
import { kernelPage } from "./kernel_page.js";
import { kernelsPage } from "./kernels_page.js";
import { memoryPage } from "./memory_page.js";
import { passesPage } from "./passes_page.js";
import { timelinePage } from "./timeline_page.js";

// The views in the order of their tabs; each gives its element for `(document, argument)`.
const VIEWS = {
  kernels: ["Kernels", kernelsPage],
  graph: ["Graph", graphPage],
  passes: ["Passes", passesPage],
  fusion: ["Fusion", fusionPage],
  timeline: ["Timeline", timelinePage],
  memory: ["Memory", memoryPage],
};
const MORE = { kernel: kernelPage };

async function start() {
  const data = await readDocument();
  document.getElementById("name").replaceChildren(
    data.model.name, h("small", {}, `${data.model.target.split("\n")[0]} · ${data.model.precision}`));
  document.getElementById("tabs").replaceChildren(...Object.entries(VIEWS).map(([name, [title]], i) =>
    h("a", { href: `#${name}`, role: "tab", id: `tab-${name}`, title: `key ${i + 1}` }, title)));
  const show = () => open(data);
  window.addEventListener("hashchange", show);
  window.addEventListener("keydown", onKey);
  show();
  if (data.live) followServer((text) => (document.getElementById("problem").textContent = text));
  document.documentElement.dataset.ready = performance.now().toFixed(0);
}

function open(data) {
  const [name, argument] = location.hash.slice(1).split("/");
  const view = VIEWS[name]?.[1] ?? MORE[name] ?? kernelsPage;
  const tab = name === "kernel" || !(name in VIEWS) ? "kernels" : name;
  for (const link of document.querySelectorAll("#tabs a")) {
    const selected = link.id === `tab-${tab}`;
    link.setAttribute("aria-selected", selected);
    if (selected) link.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  const main = document.getElementById("view");
  main.className = `view-${name || "kernels"}`;
  main.replaceChildren(view(data, argument));
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches("input, select");
  if (event.key === "Escape") {
    if (typing) event.target.blur();
    else if (location.hash.startsWith("#kernel/")) location.hash = "#kernels";
  } else if (!typing && event.key === "/") {
    const search = document.querySelector("input[type=search]");
    if (search) {
      event.preventDefault();
      search.focus();
    }
  } else if (!typing && event.key >= "1" && event.key <= "6") {
    location.hash = `#${Object.keys(VIEWS)[event.key - 1]}`;
  }
}

start();
