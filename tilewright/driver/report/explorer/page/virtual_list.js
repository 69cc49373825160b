// A list of rows of equal height, of which only those in sight are in the page.

import { h } from "./element.js";

export class VirtualList {
  // `row(index)` makes the element of a row.
  constructor(container, { count, height, row, width = "100%" }) {
    this.container = container;
    this.height = height;
    this.row = row;
    this.rows = new Map();
    this.inner = h("div", { class: "rows" });
    container.replaceChildren(this.inner);
    this.resize(count, width);
    container.addEventListener("scroll", () => this.draw(), { passive: true });
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(container);
  }

  resize(count, width = "100%") {
    this.count = count;
    this.inner.style.height = `${count * this.height}px`;
    this.inner.style.minWidth = width;
    this.clear();
  }

  clear() {
    this.rows.clear();
    this.inner.replaceChildren();
    this.draw();
  }

  draw() {
    const { scrollTop, clientHeight } = this.container;
    const first = Math.max(0, Math.floor(scrollTop / this.height) - 8);
    const end = Math.min(this.count, Math.ceil((scrollTop + clientHeight) / this.height) + 8);
    for (const [index, element] of this.rows) {
      if (index < first || index >= end) {
        element.remove();
        this.rows.delete(index);
      }
    }
    for (let index = first; index < end; index++) {
      if (this.rows.has(index)) continue;
      const element = this.row(index);
      element.style.top = `${index * this.height}px`;
      element.dataset.index = index;
      this.rows.set(index, element);
      this.inner.append(element);
    }
  }

  // Scroll so that a row is in sight.
  show(index) {
    const { scrollTop, clientHeight } = this.container;
    const top = index * this.height;
    if (top < scrollTop || top + this.height > scrollTop + clientHeight) {
      this.container.scrollTop = Math.max(0, top - clientHeight / 3);
    }
    this.draw();
  }
}
