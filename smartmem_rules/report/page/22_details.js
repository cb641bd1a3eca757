// What the panel beside the graphs says of a node, a kernel or a tensor.

function badge(rule) {
  const word = verdictWord(rule);
  return h("span", { class: `badge ${word.replace(/ /g, "-")}`, title: rule?.verdict || "" }, word);
}

function graphHelp(plan) {
  const kinds = Object.keys(KINDS).filter((kind) => plan.data.nodes.some((node) => node.kind === kind));
  return [
    h("h2", null, "From the model to its kernels"),
    h("p", null, "Choose a node to see which rules rewrote it and which kernel computes it; choose a kernel to see the nodes that went into it. The other side follows."),
    h("ul", { class: "legend column" }, kinds.map((kind) => h("li", null, h("span", { class: `swatch kind ${kind}` }), KINDS[kind].word)), plan.data.launches.some((launch) => launch.form === "moves only") ? h("li", null, h("span", { class: "swatch kind moves" }), "kernel that only moves data") : null),
    h("p", { class: "note" }, h("b", null, "→ 3"), " on a node means that kernel 3 computes it. The bar at the foot of a kernel is its time beside the slowest one's."),
    h("p", { class: "note keys" }, "Arrow keys go along the wires, ", h("kbd", null, "+"), " ", h("kbd", null, "−"), " ", h("kbd", null, "0"), " zoom, ", h("kbd", null, "/"), " searches. Ctrl and the wheel zoom; dragging moves."),
  ];
}

function nodeDetails(plan, node) {
  return [
    h("p", { class: "kicker" }, node.domain ? `${node.domain} node` : "ONNX node"),
    h("h2", null, node.operator),
    h("p", { class: "name whole" }, node.node),
    h("ol", { class: "way" },
      wayStep(KINDS[node.kind].word, `kind ${node.kind}`, [h("p", null, `${sentence(node.outcome)}.`), tensorsOf(plan, node)]),
      wayStep(node.rules.length ? `rewritten by ${count(node.rules.length, "rule")}` : "rewritten by no rule", "", node.rules.map((rule) => ruleCard(plan, rule))),
      lastStep(plan, node),
    ),
    node.near_misses.length ? h("section", null, h("h3", null, "Nearest rules that did not fire"), node.near_misses.map((miss) => missCard(plan, miss))) : null,
  ];
}

function wayStep(title, look, content) {
  return h("li", null, h("h3", null, h("span", { class: `swatch ${look}` }), title), content);
}

function lastStep(plan, node) {
  if (node.launches.length) return wayStep(`computed by ${count(node.launches.length, "kernel")}`, "kind computed", node.launches.map((number) => launchCard(plan, plan.data.launches[number])));
  const found = readers(plan, node);
  if (node.kind === "view" && found.length) return wayStep(`read in place by ${count(found.length, "kernel")}`, "kind view", shortList(found, (number) => [launchLink(number), " ", h("span", { class: "note" }, plan.operators(plan.data.launches[number]))], 6));
  return wayStep("no kernel is needed", "", null);
}

function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function tensorsOf(plan, node) {
  const row = (word, names) => names.filter(Boolean).map((name) => [word, [h("span", { class: "name", title: name.slice(0, 400) }, ending(name, 36)), " ", h("span", { class: "type" }, plan.data.types[name] || "")]]);
  return facts([...row("takes", node.inputs.slice(0, 8)), ...row("gives", node.outputs.slice(0, 8))]);
}

function ruleCard(plan, name) {
  const rule = plan.data.rules[name];
  return h("div", { class: "card" }, h("p", { class: "card-head" }, ruleLink(name), badge(rule)), rule?.equation ? h("p", { class: "equation" }, rule.equation) : null, h("p", { class: "note" }, place(rule)));
}

function missCard(plan, miss) {
  const rule = plan.data.rules[miss.rule];
  const values = Object.entries(miss.values || {});
  return h("div", { class: "card" },
    h("p", { class: "card-head" }, ruleLink(miss.rule), badge(rule)),
    rule?.equation ? h("p", { class: "equation" }, rule.equation) : null,
    h("p", null, "Its guard ", h("code", null, miss.reason), " does not hold", values.length ? [" for ", linked(values.map(([name, value]) => h("code", null, `${name} = ${value}`)))] : null, "."),
    h("p", { class: "note" }, miss.guard ? place(miss.guard) : place(rule)));
}

function launchCard(plan, launch) {
  return h("div", { class: "card" },
    h("p", { class: "card-head" }, launchLink(launch.number), h("span", { class: "type" }, launch.form)),
    h("p", null, plan.operators(launch)),
    launchFacts(plan, launch, true),
    launch.writes.slice(0, 4).map((tensor) => h("p", { class: "note" }, "writes ", h("code", null, plan.data.tensors[tensor]?.layout || ""), " ", plan.data.tensors[tensor]?.type || "")));
}

function launchFacts(plan, launch, isShort) {
  const { measured } = launch;
  return facts([
    launch.modelled_us === null ? null : ["modelled", milliseconds(launch.modelled_us / 1000)],
    measured ? ["measured", milliseconds(measured.ms)] : null,
    measured ? ["share of all", percent(measured.share)] : null,
    measured ? ["of the roof", percent(measured.roof_share)] : null,
    isShort ? null : ["operations", operations(launch.operations)],
    isShort || !measured ? null : ["reached", `${figure(Number(measured.gflops.toPrecision(3)))} GFLOP/s, ${figure(Number(measured.gbytes_per_s.toPrecision(3)))} GB/s`],
    ["moves", bytes(launch.bytes_moved)],
    isShort ? null : ["work-items", `${launch.global_size.join(" × ")}${launch.local_size ? ` in groups of ${launch.local_size.join(" × ")}` : ""}`],
    isShort || !launch.local_bytes ? null : ["local memory", bytes(launch.local_bytes)],
  ]);
}

function launchDetails(plan, launch) {
  const rules = [...new Set(launch.origin.flatMap((name) => plan.nodeByName.get(name)?.rules || []))];
  return [
    h("p", { class: "kicker" }, `Kernel ${launch.number} of ${plan.data.launches.length}`),
    h("h2", null, plan.operators(launch)),
    h("p", { class: "name whole" }, launch.name),
    launchFacts(plan, launch, false),
    h("p", null, h("a", { class: "button", href: address("launch", launch.number) }, "Layouts, schedule and OpenCL C")),
    h("h3", null, `Made of ${count(launch.origin.length, "node")}`),
    shortList(launch.origin, (name) => [h("span", { class: "type" }, plan.nodeByName.get(name)?.operator || ""), " ", nodeLink(name, 34)], 10),
    rules.length ? [h("h3", null, "Rules on the way"), rules.map((rule) => ruleCard(plan, rule))] : null,
  ];
}

function otherDetails(plan, launch) {
  return [
    h("p", { class: "kicker" }, `Kernel ${launch.number} of the other plan, ${planWords(plan)}`),
    h("h2", null, plan.operators(launch)),
    h("p", { class: "name whole" }, launch.name),
    launchFacts(plan, launch, false),
    h("p", null, h("a", { class: "button", href: `#/${plan.number}/launch/${launch.number}` }, "See it in its plan")),
  ];
}

function tensorDetails(plan, name) {
  return [h("p", { class: "kicker" }, "Tensor"), h("h2", { class: "name whole" }, name), tensorFacts(plan, name)];
}

function tensorFacts(plan, name) {
  const stored = plan.data.tensors[name];
  if (!stored) return h("p", null, plan.data.types[name] ? `${plan.data.types[name]}. It is not in device memory.` : "Nothing is known of it.");
  const links = (numbers) => linked((numbers || []).map((number) => launchLink(number)));
  return facts([
    ["type", h("span", { class: "type" }, stored.type)],
    ["role", stored.role],
    ["layout", h("code", null, stored.layout)],
    ["stored as", stored.storage],
    ["takes", bytes(stored.bytes)],
    stored.slot === null ? null : ["lies in", `slot ${stored.slot}${stored.offset === null ? "" : `, from byte ${figure(stored.offset)}`}`],
    stored.first === null ? null : ["counts", `from kernel ${stored.first} to kernel ${stored.last}`],
    plan.writerOf.has(name) ? ["written by", links(plan.writerOf.get(name))] : null,
    plan.readersOf.has(name) ? ["read by", links(plan.readersOf.get(name))] : null,
  ]);
}
