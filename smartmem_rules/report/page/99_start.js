// Reads the data, then shows the view that the address names.

const VIEWS = {
  overview: { words: "Overview", show: showOverview },
  graph: { words: "Graph", show: showGraph },
  nodes: { words: "Nodes", show: showNodes },
  launches: { words: "Kernels", show: showLaunches },
  memory: { words: "Memory", show: showMemory },
  rules: { words: "Rules", show: showRules },
  left: { words: "What was left", show: showLeft },
  levels: { words: "Levels", show: showLevels },
  compare: { words: "Two plans", show: showCompare },
  launch: { under: "launches", show: showLaunch },
  rule: { under: "rules", show: showRule },
  tensor: { under: "memory", show: showTensor },
};

let graph = null; // the graphs that are shown, to which another choice is told without drawing them anew
let isFirst = true;

function showGraph(main, parts) {
  if (!graph || graph.plan !== report.plan) graph = { plan: report.plan, choose: makeGraph(main) };
  graph.choose(parts);
}

function showMissing(main, what) {
  replace(main, h("div", { class: "page" }, h("h1", null, "Not in this report"), h("p", null, `There is no ${what} in this plan.`), h("p", null, h("a", { href: address("overview") }, "To the overview"))));
}

async function unpacked(id) {
  const packed = Uint8Array.from(atob(document.getElementById(id).textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function showRoute(forget) {
  const asked = route() || { plan: report.plan ? report.plan.number : 1, view: "overview", parts: [] };
  const plan = report.plans[asked.plan - 1];
  const isNewPlan = plan !== report.plan;
  report.plan = plan;
  const main = document.getElementById("main");
  const view = VIEWS[asked.view];
  if (asked.view !== "graph") graph = null;
  if (isNewPlan) { forget(); drawPlanChoice(); }
  drawViews(view ? view.under || asked.view : "");
  document.body.dataset.view = asked.view;
  if (view) view.show(main, asked.parts);
  else showMissing(main, `view ${ending(asked.view, 40)}`);
  const title = main.querySelector("h1")?.textContent || "";
  document.title = `${ending(title, 60)} · ${ending(plan.figures.model, 60)}`;
  if (isFirst) { isFirst = false; return; }
  if (asked.view !== "graph") { scrollTo(0, 0); main.focus({ preventScroll: true }); }
  if (asked.view !== "graph") say(title);
}

function drawViews(here) {
  const views = Object.entries(VIEWS).filter(([, view]) => view.words);
  replace(document.getElementById("views"), views.map(([name, view]) => h("a", { href: address(name), "aria-current": name === here ? "page" : null }, view.words)));
  document.querySelector("#views [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function drawPlanChoice() {
  if (report.plans.length < 2) return;
  const select = h("select", { class: "field", "aria-label": "Plan that is shown", onchange: () => {
    const now = route();
    const parts = now && VIEWS[now.view] && !VIEWS[now.view].under ? [now.view] : ["overview"];
    location.hash = `#/${select.value === "2" ? "2/" : ""}${parts[0]}`;
  } }, report.plans.map((plan) => h("option", { value: plan.number, selected: plan === report.plan }, `Plan ${plan.number}: ${planWords(plan)}`)));
  replace(document.getElementById("plan-choice"), select);
}

function makeTheme(button) {
  const themes = ["system", "light", "dark"];
  button.addEventListener("click", () => {
    const root = document.documentElement;
    const next = themes[(themes.indexOf(root.dataset.theme || "system") + 1) % themes.length];
    if (next === "system") delete root.dataset.theme; else root.dataset.theme = next;
    button.textContent = `Theme: ${next}`;
  });
}

async function start() {
  if (typeof DecompressionStream === "undefined") throw new Error("this browser is too old to unpack the data");
  const [data, drawings] = await Promise.all([unpacked("data"), unpacked("drawings")]);
  report.plans = [new Plan(data.plan, drawings[0], 1)];
  if (data.against) report.plans.push(new Plan(data.against.plan, drawings[1], 2));
  report.levels = data.levels;
  report.against = data.against;
  report.plan = null;
  const forget = makeSearch(document.getElementById("search"));
  makeTheme(document.getElementById("theme"));
  addEventListener("hashchange", () => showRoute(forget));
  showRoute(forget);
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
  performance.mark("interactive");
}

start().catch((error) => {
  document.getElementById("starting").textContent = `The details cannot be shown: ${error.message}.`;
  throw error;
});
