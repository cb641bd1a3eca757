// Device memory while the kernels run: each intermediate as a box from its first to its last kernel, at its place.

function showMemory(main) {
  const plan = report.plan;
  const all = Object.entries(plan.data.tensors).map(([name, tensor]) => ({ name, ...tensor }));
  const alive = all.filter((tensor) => tensor.first !== null && tensor.slot !== null);
  const memory = plan.data.figures.intermediate_bytes;
  const role = (one) => all.filter((tensor) => tensor.role === one).reduce((sum, tensor) => sum + tensor.bytes, 0);
  replace(main, h("div", { class: "page wide" },
    h("h1", null, "Memory over time"),
    h("p", { class: "lead" }, alive.length ? [h("strong", null, bytes(memory.reused)), ` hold ${count(alive.length, "intermediate")}`, memory.separate ? `; each in memory of its own they would take ${bytes(memory.separate)}` : "", memory.bound !== undefined && memory.bound === memory.reused ? ". No plan for these kernels can need less." : "."] : "This plan keeps no intermediates."),
    facts([["inputs and outputs", bytes(role("input") + role("output"))], ["constants", bytes(role("constant"))], memory.model ? ["all tensors of the model", bytes(memory.model)] : null]),
    alive.length ? [memoryChart(plan, alive), memoryTable(plan, alive)] : null));
}

// Slots lie one above the other; a tensor without an offset begins where its slot does.
function memoryChart(plan, alive) {
  const bases = [];
  let whole = 0;
  plan.data.slots.forEach((slot) => { bases.push(whole); whole += slot.bytes; });
  const steps = plan.data.launches.length;
  const [width, height, left, foot] = [1000, 380, 74, 26];
  const x = (launch) => left + (launch / steps) * (width - left - 8);
  const y = (place) => 8 + (1 - place / (whole || 1)) * (height - 8 - foot);
  const live = plan.data.launches.map((_, number) => alive.filter((tensor) => tensor.first <= number && number <= tensor.last).reduce((sum, tensor) => sum + tensor.bytes, 0));
  const colours = colouring(alive);
  const told = h("p", { class: "memory-told", "aria-hidden": "true" }, "Point at a box to see which tensor it is; choose it to see its kernels.");
  const describe = (tensor) => `${ending(tensor.name, 80)}: ${tensor.type}, ${bytes(tensor.bytes)}, kernels ${tensor.first} to ${tensor.last}`;
  const boxes = alive.map((tensor, number) => {
    const from = bases[tensor.slot] + (tensor.offset || 0);
    const [top, under] = [y(from + tensor.bytes), y(from)];
    const show = { onpointerenter: () => { told.textContent = describe(tensor); }, onclick: () => { location.hash = address("tensor", tensor.name); } };
    return svg("g", show, svg("rect", { class: "life", x: x(tensor.first) + 0.5, y: top + 0.5, width: Math.max(1, x(tensor.last + 1) - x(tensor.first) - 1), height: Math.max(1, under - top - 1), rx: 2, fill: `var(--form-${colours[number]})` }, svg("title", null, describe(tensor))));
  });
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => svg("g", { class: "tick" }, svg("path", { d: `M${left} ${y(share * whole)}H${width - 8}` }), svg("text", { x: left - 8, y: y(share * whole) + 4, "text-anchor": "end" }, bytes(share * whole))));
  const every = Math.max(1, Math.ceil(steps / 16));
  const numbers = plan.data.launches.filter((_, number) => number % every === 0).map((launch) => svg("text", { class: "tick", x: x(launch.number + 0.5), y: height - 8, "text-anchor": "middle" }, String(launch.number)));
  const line = live.map((sum, number) => `${number ? "L" : "M"}${x(number)} ${y(sum)}L${x(number + 1)} ${y(sum)}`).join("");
  const most = Math.max(...live);
  return h("figure", { class: "chart" },
    h("div", { class: "scrolled", tabindex: "0", role: "region", "aria-label": "Chart of memory over time; the table below has the same figures" },
      svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "memory", role: "img", "aria-label": `Memory over ${count(steps, "kernel")}: at most ${bytes(most)} count at once, at kernel ${live.indexOf(most)}` }, ticks, boxes, svg("path", { class: "live", d: line }), numbers)),
    told,
    h("figcaption", { class: "note" }, "Across: the kernels in the order of execution. Up: the bytes of the memory that intermediates share. Each box is a tensor, from the kernel that writes it to the last one that reads it. The line is the sum of all that count."));
}

// Boxes that touch have different colours as far as eight colours reach.
function colouring(alive) {
  return alive.map((_, number) => number % 8);
}

function memoryTable(plan, alive) {
  return h("section", null, h("h2", null, "Intermediates"), sortable({
    caption: "Intermediates in device memory",
    rows: alive,
    sortedBy: 4,
    downwards: true,
    words: (tensor) => `${tensor.name} ${tensor.type} ${tensor.layout}`,
    columns: [
      { name: "Tensor", cell: (tensor) => h("a", { class: "name", href: address("tensor", tensor.name), title: tensor.name.slice(0, 400) }, ending(tensor.name, 52)), sort: (tensor) => tensor.name },
      { name: "Type", cell: (tensor) => h("span", { class: "type" }, tensor.type), isMinor: true },
      { name: "Layout", cell: (tensor) => h("code", null, tensor.layout), sort: (tensor) => tensor.layout, isMinor: true },
      { name: "Kernels", cell: (tensor) => [launchLink(tensor.first, String(tensor.first)), " to ", launchLink(tensor.last, String(tensor.last))], sort: (tensor) => tensor.first, isNumber: true },
      { name: "Takes", cell: (tensor) => bytes(tensor.bytes), sort: (tensor) => tensor.bytes, isNumber: true },
      { name: "Slot", cell: (tensor) => `${tensor.slot} ${plan.data.slots[tensor.slot].memory}`, sort: (tensor) => tensor.slot, isMinor: true },
    ],
  }));
}
