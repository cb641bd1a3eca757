// One drawn graph: boxes on layers and wires between them, scrolled, zoomed and walked along.

const BOX = { height: 38, gap: 30, margin: 28 };
const PITCH = BOX.height + BOX.gap;
const ZOOM = { least: 0.06, most: 1.6, far: 0.42 };

// As the style sheet has them.
function boxFonts() {
  const look = getComputedStyle(document.documentElement);
  const [sans, mono] = ["--sans", "--mono"].map((name) => look.getPropertyValue(name));
  return { title: `600 12.5px ${sans}`, sub: `10px ${mono}`, tag: `600 11px ${sans}` };
}

class Pane {
  // box: (vertex) -> {title, sub, tag, look, share}; pick: (vertex) -> what a click chooses; name: said to listeners.
  constructor({ name, drawing, box, pick }) {
    Object.assign(this, { name, drawing, box, pick, scale: 1, shown: new Map(), marked: new Map(), focus: -1 });
    this.width = drawing.width + 2 * BOX.margin;
    this.layers = Math.max(-1, ...drawing.layers) + 1;
    this.height = this.layers * PITCH - BOX.gap + 2 * BOX.margin;
    this.above = drawing.vertices.map(() => []);
    this.below = drawing.vertices.map(() => []);
    this.wireOf = new Map();
    drawing.wires.forEach((wire) => {
      this.wireOf.set(wire.source, wire);
      wire.targets.forEach((target) => { this.below[wire.source].push(target); this.above[target].push(wire.source); });
    });
    this.wires = svg("g", { class: "wires" });
    this.overlay = svg("g", { class: "wires chosen" });
    this.boxes = svg("g", { class: "boxes" });
    this.stage = svg("g", null, this.wires, this.overlay, this.boxes);
    this.picture = svg("svg", { "aria-hidden": "true", focusable: "false" }, this.stage);
    this.element = h("div", {
      class: "pane-graph", tabindex: "0", role: "application", "aria-roledescription": "graph", "aria-describedby": "graph-keys",
      "aria-label": `${name}: ${count(drawing.vertices.length, "box", "boxes")}`,
    }, this.picture);
    this.listen();
  }

  x(vertex) { return BOX.margin + this.drawing.middles[vertex]; }
  top(layer) { return BOX.margin + layer * PITCH; }

  listen() {
    this.element.addEventListener("scroll", () => this.later());
    this.element.addEventListener("click", (event) => {
      const hit = event.target.closest("[data-vertex]");
      if (hit && !this.dragged) this.choose(Number(hit.dataset.vertex));
    });
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const area = this.element.getBoundingClientRect();
      this.zoom(this.scale * Math.exp(-event.deltaY / 240), event.clientX - area.left, event.clientY - area.top);
    }, { passive: false });
    this.element.addEventListener("pointerdown", (event) => this.drag(event));
    new ResizeObserver(() => this.resized()).observe(this.element);
  }

  // A mouse drags the picture; fingers scroll it by themselves.
  drag(start) {
    this.dragged = false;
    if (start.button !== 0 || start.pointerType !== "mouse") return;
    const [left, up] = [this.element.scrollLeft, this.element.scrollTop];
    const move = (event) => {
      const [x, y] = [event.clientX - start.clientX, event.clientY - start.clientY];
      if (Math.abs(x) + Math.abs(y) > 4) { this.dragged = true; this.element.classList.add("dragged"); }
      if (this.dragged) this.element.scrollTo(left - x, up - y);
    };
    const end = () => {
      this.element.classList.remove("dragged");
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", end);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", end);
  }

  key(event) {
    const zooms = { "+": 1.25, "=": 1.25, "-": 0.8 };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (zooms[event.key]) this.zoom(this.scale * zooms[event.key]);
    else if (event.key === "0") this.fit();
    else if (event.key.startsWith("Arrow")) this.walk(event.key.slice(5));
    else if (event.key === "Home") this.choose(0);
    else if (event.key === "End") this.choose(this.drawing.vertices.length - 1);
    else return;
    event.preventDefault();
  }

  // The box above or below along a wire, rather the one that this one was reached from; or the next on the same layer.
  walk(way) {
    if (this.focus < 0) { this.choose(0); return; }
    const { middles, layers } = this.drawing;
    const near = (all) => [...all].sort((a, b) => Math.abs(middles[a] - middles[this.focus]) - Math.abs(middles[b] - middles[this.focus]))[0];
    let next;
    const back = (all) => (all.includes(this.came) ? this.came : near(all));
    if (way === "Up") next = back(this.above[this.focus]);
    else if (way === "Down") next = back(this.below[this.focus]);
    else {
      const side = way === "Left" ? -1 : 1;
      next = near(layers.flatMap((layer, vertex) => (layer === layers[this.focus] && side * (middles[vertex] - middles[this.focus]) > 0 ? [vertex] : [])));
    }
    if (next === undefined) say("nothing further on this way");
    else {
      const from = this.focus;
      this.choose(next);
      this.came = from;
    }
  }

  choose(vertex) {
    if (vertex < 0 || vertex >= this.drawing.vertices.length) return;
    this.focus = vertex;
    this.pick(this.drawing.vertices[vertex]);
  }

  resized() {
    const first = !this.area;
    this.area = { width: this.element.clientWidth, height: this.element.clientHeight };
    if (!this.area.width) { this.area = null; return; }
    if (first) this.start();
    this.draw();
  }

  // At first the first box is in view, and can be read: all of the width is shown only where names stay large enough.
  start() {
    const fitting = this.area.width / this.width;
    this.setScale(Math.min(1, Math.max(0.72, fitting)));
    if (this.drawing.vertices.length) this.element.scrollTo(this.x(0) * this.scale + this.left - this.area.width / 2, (this.top(this.drawing.layers[0]) - BOX.margin) * this.scale);
    if (this.wanted !== undefined) this.show(this.wanted);
  }

  setScale(scale) {
    this.scale = Math.min(ZOOM.most, Math.max(ZOOM.least, scale));
    const [width, height] = [Math.max(this.area.width, this.width * this.scale), Math.max(this.area.height, this.height * this.scale)];
    this.picture.setAttribute("width", Math.floor(width));
    this.picture.setAttribute("height", Math.floor(height));
    this.left = (width - this.width * this.scale) / 2;
    this.stage.setAttribute("transform", `translate(${this.left} 0) scale(${this.scale})`);
    this.element.classList.toggle("far", this.scale < ZOOM.far);
  }

  zoom(scale, x = this.area.width / 2, y = this.area.height / 2) {
    const { scrollLeft, scrollTop } = this.element;
    const at = [(scrollLeft + x - this.left) / this.scale, (scrollTop + y) / this.scale];
    this.setScale(scale);
    this.element.scrollTo(at[0] * this.scale + this.left - x, at[1] * this.scale - y);
    this.later();
  }

  // All of it; of a long graph the first part, where boxes can still be told apart.
  fit() {
    this.setScale(Math.min(1, this.area.width / this.width, this.area.height / this.height));
    this.element.scrollTo(0, 0);
    this.later();
  }

  later() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.draw(); });
  }

  // Bring a box into view; at once or, where the pane is in view already, gently.
  show(vertex) {
    if (!this.area) { this.wanted = vertex; return; }
    if (this.scale < ZOOM.far) this.setScale(0.72);
    const [x, y] = [this.x(vertex) * this.scale + this.left, (this.top(this.drawing.layers[vertex]) + BOX.height / 2) * this.scale];
    const { scrollLeft, scrollTop } = this.element;
    const half = 100 * this.scale;
    const inside = x - half > scrollLeft && x + half < scrollLeft + this.area.width && y - 60 > scrollTop && y + 60 < scrollTop + this.area.height;
    if (!inside) this.element.scrollTo({ left: x - this.area.width / 2, top: y - this.area.height / 2, behavior: "instant" });
    this.draw();
  }

  // looks: vertex -> "chosen" or "related".
  mark(looks) {
    this.marked = looks;
    this.element.classList.toggle("has-chosen", looks.size > 0);
    for (const [key, element] of this.shown) if (typeof key === "number") this.look(key, element);
    const chosen = [...looks].filter(([, look]) => look === "chosen").map(([vertex]) => vertex);
    replace(this.overlay, chosen.slice(0, 40).flatMap((vertex) => [
      ...this.above[vertex].map((source) => svg("path", { d: this.way(this.wireOf.get(source), vertex), class: "in" })),
      ...this.below[vertex].map((target) => svg("path", { d: this.way(this.wireOf.get(vertex), target), class: "out" })),
    ]));
    if (chosen.length) this.focus = chosen[0];
  }

  look(vertex, element) {
    element.classList.toggle("chosen", this.marked.get(vertex) === "chosen");
    element.classList.toggle("related", this.marked.get(vertex) === "related");
  }

  // Only what is near the visible part has elements.
  draw() {
    if (!this.area) return;
    const above = (this.element.scrollTop - this.area.height * 0.6) / this.scale;
    const below = (this.element.scrollTop + this.area.height * 1.6) / this.scale;
    const [first, last] = [above, below].map((y) => Math.floor((y - BOX.margin) / PITCH));
    const keep = new Set();
    const add = (key, make, root) => {
      keep.add(key);
      if (this.shown.has(key)) return;
      const element = make();
      this.shown.set(key, element);
      root.append(element);
    };
    this.drawing.layers.forEach((layer, vertex) => {
      if (layer >= first && layer <= last) add(vertex, () => this.makeBox(vertex), this.boxes);
    });
    this.drawing.wires.forEach((wire, number) => {
      const [from, to] = [this.drawing.layers[wire.source], Math.max(...wire.targets.map((target) => this.drawing.layers[target]))];
      if (from <= last && to >= first) add(`wire ${number}`, () => svg("path", { d: this.whole(wire) }), this.wires);
    });
    for (const [key, element] of this.shown) {
      if (!keep.has(key)) { element.remove(); this.shown.delete(key); }
    }
  }

  makeBox(vertex) {
    const { title, sub, tag, look, share } = this.box(this.drawing.vertices[vertex]);
    const width = this.drawing.box;
    this.fonts = this.fonts || boxFonts();
    pencil.font = this.fonts.tag;
    const tagWidth = tag ? pencil.measureText(tag).width + 8 : 0;
    const element = svg("g", { class: `box ${look}`, "data-vertex": vertex, transform: `translate(${this.x(vertex) - width / 2} ${this.top(this.drawing.layers[vertex])})` },
      svg("rect", { class: "box-body", width, height: BOX.height, rx: 5 }),
      svg("path", { class: "box-edge", d: `M5 0H4a4 4 0 0 0-4 4V${BOX.height - 4}a4 4 0 0 0 4 4h1z` }),
      svg("text", { class: "box-title", x: 13, y: 16 }, fitting(title, this.fonts.title, width - 22, beginning)),
      svg("text", { class: "box-sub", x: 13, y: 30 }, fitting(sub, this.fonts.sub, width - 22 - tagWidth, ending)),
      tag ? svg("text", { class: "box-tag", x: width - 9, y: 30, "text-anchor": "end" }, tag) : null,
      share ? svg("rect", { class: "box-share", x: 5, y: BOX.height - 3, width: Math.max(1, (width - 8) * share), height: 3 }) : null,
    );
    this.look(vertex, element);
    return element;
  }

  // From the foot of one layer to the head of the next.
  bend(x, from, to) {
    const [y, below] = [this.top(from) + BOX.height, this.top(from + 1)];
    return x === to ? `V${below}` : `C${x} ${(y + below) / 2} ${to} ${(y + below) / 2} ${to} ${below}`;
  }

  whole(wire) {
    const layer = this.drawing.layers[wire.source];
    const bends = wire.bends.map((x) => BOX.margin + x);
    let path = `M${this.x(wire.source)} ${this.top(layer) + BOX.height}`;
    let x = this.x(wire.source);
    bends.forEach((next, depth) => {
      path += `${this.bend(x, layer + depth, next)}V${this.top(layer + depth + 1) + BOX.height}`;
      x = next;
    });
    for (const target of wire.targets) {
      const depth = this.drawing.layers[target] - layer - 1;
      const start = depth ? bends[depth - 1] : this.x(wire.source);
      path += `M${start} ${this.top(layer + depth) + BOX.height}${this.bend(start, layer + depth, this.x(target))}`;
    }
    return path;
  }

  way(wire, target) {
    const depth = this.drawing.layers[target] - this.drawing.layers[wire.source] - 1;
    return this.whole({ source: wire.source, bends: wire.bends.slice(0, depth), targets: [target] });
  }
}
