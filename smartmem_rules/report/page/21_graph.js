// The graph before and after, side by side, and the way of what is chosen from one to the other.

const graphState = { left: "model", right: "launches" };

// What a pane can show.
function graphChoices() {
  const plan = report.plan;
  const other = report.plans.find((one) => one !== plan);
  const numbers = (name, from) => count(from.drawings[name].vertices.filter((vertex) => ["node", "launch"].includes(vertex.kind)).length, name === "launches" ? "kernel" : "node");
  const found = [];
  if (plan.drawings.model) {
    found.push({ key: "model", words: `ONNX model, ${numbers("model", plan)} that run`, plan });
    if (plan.drawings.whole.vertices.length > plan.drawings.model.vertices.length) found.push({ key: "whole", words: `ONNX model, all ${numbers("whole", plan)}`, plan });
  } else found.push({ key: "unknown", words: "ONNX model, not known", plan });
  found.push({ key: "launches", words: `Plan: ${numbers("launches", plan)}${other ? `, ${planWords(plan)}` : ""}`, plan });
  if (other) found.push({ key: "other", words: `Other plan: ${numbers("launches", other)}, ${planWords(other)}`, plan: other });
  return found;
}

function boxOf(plan, vertex) {
  if (vertex.kind === "input" || vertex.kind === "output") {
    const name = plan.data[`${vertex.kind}s`][vertex.number];
    return { title: name, sub: `${vertex.kind}  ${plan.data.types[name] || plan.data.tensors[name]?.type || ""}`, look: "end" };
  }
  if (vertex.kind === "node") {
    const node = plan.data.nodes[vertex.number];
    return { title: node.operator, sub: node.node, tag: tagOf(node), look: node.kind };
  }
  const launch = plan.data.launches[vertex.number];
  const most = Math.max(...plan.data.launches.map((one) => plan.time(one) || 0));
  const time = plan.time(launch);
  return { title: plan.operators(launch), sub: launch.name, tag: time === null ? null : milliseconds(time), look: launch.form === "moves only" ? "launch moves" : "launch", share: most && time ? time / most : 0 };
}

function tagOf(node) {
  if (!node.launches.length) return null;
  return node.launches.length > 1 ? `→ ${node.launches[0]} +${node.launches.length - 1}` : `→ ${node.launches[0]}`;
}

function wordsOf(plan, vertex) {
  if (vertex.kind === "node") { const node = plan.data.nodes[vertex.number]; return `${node.operator} ${node.node}: ${node.outcome}`; }
  if (vertex.kind === "launch") { const launch = plan.data.launches[vertex.number]; return `kernel ${launch.name}: ${plan.operators(launch)}`; }
  return `${vertex.kind} ${plan.data[`${vertex.kind}s`][vertex.number]}`;
}

function makeGraph(main) {
  const choices = graphChoices();
  if (!choices.some((choice) => choice.key === graphState.left)) graphState.left = choices[0].key;
  if (!choices.some((choice) => choice.key === graphState.right)) graphState.right = "launches";
  const panes = {};
  const details = h("aside", { class: "details", "aria-label": "Details of what is chosen", tabindex: "-1" });
  const sides = { left: makeSide("left", "Before"), right: makeSide("right", "After") };

  function makeSide(side, title) {
    const holder = h("div", { class: "pane-holder" });
    const select = h("select", { class: "field", "aria-label": `${title}: what is shown` }, choices.map((choice) => h("option", { value: choice.key, selected: choice.key === graphState[side] }, choice.words)));
    const button = (sign, words, act) => h("button", { type: "button", class: "button small", "aria-label": `${title}: ${words}`, title: words, onclick: act }, sign);
    const fillPane = () => {
      const { key, plan } = choices.find((choice) => choice.key === graphState[side]);
      if (key === "unknown") {
        panes[side] = null;
        replace(holder, h("p", { class: "pane-note" }, "This plan comes from a file without its model. Name the ONNX model instead of the plan, and its graph stands here."));
        return;
      }
      panes[side] = new Pane({
        name: `${title}, ${select.selectedOptions[0].text}`,
        drawing: plan.drawings[key === "other" ? "launches" : key],
        box: (vertex) => boxOf(plan, vertex),
        pick: (vertex) => { say(wordsOf(plan, vertex)); chooseVertex(plan, vertex); },
      });
      panes[side].plan = plan;
      replace(holder, panes[side].element);
    };
    select.addEventListener("change", () => { graphState[side] = select.value; fillPane(); choose(route()?.parts || []); });
    fillPane();
    const tools = h("div", { class: "pane-tools" }, button("−", "zoom out", () => panes[side]?.zoom(panes[side].scale * 0.8)), button("+", "zoom in", () => panes[side]?.zoom(panes[side].scale * 1.25)), button("Fit", "show all of it", () => panes[side]?.fit()));
    return h("section", { class: "pane", "aria-label": title }, h("div", { class: "pane-head" }, h("h2", null, title), select, tools), holder);
  }

  function chooseVertex(plan, vertex) {
    let parts = [vertex.kind, vertex.number];
    if (vertex.kind === "node") parts = ["node", plan.data.nodes[vertex.number].node];
    else if (vertex.kind !== "launch") parts = ["tensor", plan.data[`${vertex.kind}s`][vertex.number]];
    else if (plan !== report.plan) parts = ["other", vertex.number];
    history.replaceState(null, "", address("graph", ...parts));
    choose(parts.map(String));
  }

  // The nodes and launches that belong to what is chosen; each pane marks those that it shows.
  function choose([kind, name]) {
    const plan = report.plan;
    const nodes = new Map();
    const launches = new Map();
    if (kind === "node" && plan.nodeByName.has(name)) {
      const node = plan.nodeByName.get(name);
      nodes.set(name, "chosen");
      for (const number of node.launches) {
        launches.set(number, "chosen");
        plan.data.launches[number].origin.forEach((other) => nodes.has(other) || nodes.set(other, "related"));
      }
      if (!node.launches.length) readers(plan, node).forEach((number) => launches.set(number, "related"));
      replace(details, nodeDetails(plan, node));
    } else if (kind === "launch" && plan.data.launches[name]) {
      launches.set(Number(name), "chosen");
      plan.data.launches[name].origin.forEach((other) => nodes.set(other, "related"));
      replace(details, launchDetails(plan, plan.data.launches[name]));
    } else if (kind === "other") {
      const other = report.plans.find((one) => one !== plan);
      other.data.launches[name].origin.forEach((one) => nodes.set(one, "related"));
      replace(details, otherDetails(other, other.data.launches[name]));
    } else if (kind === "tensor") {
      replace(details, tensorDetails(plan, name));
    } else {
      replace(details, graphHelp(plan));
    }
    for (const pane of Object.values(panes)) if (pane) mark(pane, kind, name, nodes, launches);
  }

  function mark(pane, kind, name, nodes, launches) {
    const looks = new Map();
    pane.drawing.vertices.forEach((vertex, number) => {
      let look;
      if (vertex.kind === "node") look = nodes.get(pane.plan.data.nodes[vertex.number].node);
      else if (vertex.kind === "launch" && pane.plan === report.plan) look = launches.get(vertex.number);
      else if (vertex.kind === "launch") look = ofOther(pane.plan, vertex.number, kind, name, nodes);
      else if (kind === "tensor" && pane.plan.data[`${vertex.kind}s`][vertex.number] === name) look = "chosen";
      if (look) looks.set(number, look);
    });
    pane.mark(looks);
    const first = [...looks].find(([, look]) => look === "chosen") || [...looks][0];
    if (first) pane.show(first[0]);
  }

  function ofOther(plan, number, kind, name, nodes) {
    if (kind === "other") return String(number) === name ? "chosen" : undefined;
    return plan.data.launches[number].origin.some((node) => nodes.has(node)) ? "related" : undefined;
  }

  replace(main,
    h("h1", { class: "unseen" }, "The graph before and after"),
    h("p", { class: "unseen", id: "graph-keys" }, "Arrow keys go along the wires and choose; plus, minus and 0 zoom; Home and End go to the first and the last box. The list of nodes says the same in a table."),
    h("div", { class: "graph" }, sides.left, sides.right, details),
  );
  return choose;
}

// The launches that read the elements of a node that no kernel computes: those of what follows it.
function readers(plan, node) {
  const found = new Set();
  const seen = new Set([node.node]);
  const open = [node];
  if (!plan.consumersOf) {
    plan.consumersOf = new Map();
    plan.data.nodes.forEach((one) => one.inputs.forEach((tensor) => push(plan.consumersOf, tensor, one)));
  }
  while (open.length) {
    for (const tensor of open.pop().outputs) {
      for (const next of plan.consumersOf.get(tensor) || []) {
        if (seen.has(next.node)) continue;
        seen.add(next.node);
        if (next.launches.length) next.launches.forEach((number) => found.add(number));
        else if (next.kind === "view") open.push(next);
      }
    }
  }
  return [...found].sort((a, b) => a - b);
}
