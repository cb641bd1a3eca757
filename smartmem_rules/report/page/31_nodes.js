// The nodes of the model as a table: the same as the graph, for those who do not look at pictures.

function showNodes(main, [kind]) {
  const plan = report.plan;
  const rows = plan.data.nodes.filter((node) => !kind || node.kind === kind);
  const kinds = Object.keys(KINDS).filter((one) => plan.data.nodes.some((node) => node.kind === one));
  const tab = (words, to, isHere) => h("a", { class: "chip", href: to, "aria-current": isHere ? "true" : null }, words);
  replace(main, h("div", { class: "page wide" },
    h("h1", null, "Nodes of the model"),
    h("p", { class: "chips" }, tab(`all ${figure(plan.data.nodes.length)}`, address("nodes"), !kind), kinds.map((one) => tab(`${KINDS[one].word} ${figure(plan.data.nodes.filter((node) => node.kind === one).length)}`, address("nodes", one), kind === one))),
    sortable({
      caption: "Nodes of the model, in the order of the file",
      rows,
      words: (node) => `${node.node} ${node.operator} ${node.rules.join(" ")}`,
      columns: [
        { name: "Node", cell: (node) => nodeLink(node.node), sort: (node) => node.node },
        { name: "Operator", cell: (node) => node.operator, sort: (node) => node.operator },
        { name: "What became of it", cell: (node) => [h("span", { class: `swatch kind ${node.kind}` }), KINDS[node.kind].short], sort: (node) => node.kind },
        { name: "Kernels", cell: (node) => linked(node.launches.slice(0, 6).map((number) => launchLink(number, String(number)))), sort: (node) => node.launches[0] ?? null, isNumber: true },
        { name: "Rules", cell: (node) => linked(node.rules.map(ruleLink)), sort: (node) => node.rules.length, isMinor: true },
        { name: "Nearest rule", cell: (node) => node.near_misses.slice(0, 1).map((miss) => ruleLink(miss.rule)), sort: (node) => node.near_misses.length, isMinor: true },
      ],
    })));
}
