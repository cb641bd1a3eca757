// The first view: what became of the model, where time goes, how the plan was made.

function showOverview(main) {
  const plan = report.plan;
  const { figures, measured } = plan.data;
  replace(main, h("div", { class: "page" },
    h("p", { class: "kicker" }, `${figures.device || figures.profile} · level ${figures.level} · ${figures.dtype}`),
    h("h1", { class: "name-title" }, figures.model),
    h("p", { class: "lead" }, count(figures.operators, "operator"), figures.operators === 1 ? " runs as " : " run as ", h("strong", null, count(figures.kernels, "kernel")), speed(plan), "."),
    keyFigures(plan),
    fates(plan),
    timeline(plan),
    stagesStrip(figures),
    checkWords(figures, measured),
  ));
}

function speed(plan) {
  if (plan.data.measured) return [" in ", h("strong", null, milliseconds(plan.data.measured.median_ms)), " an inference"];
  const modelled = plan.modelled();
  return modelled === null ? null : [" in a modelled ", h("strong", null, milliseconds(modelled))];
}

function keyFigures(plan) {
  const { figures, measured } = plan.data;
  const memory = figures.intermediate_bytes;
  const modelled = plan.modelled();
  const one = (name, value, before, href) => h("div", null, h("dt", null, name), h("dd", null, href ? h("a", { href }, value) : value), h("dd", { class: "note" }, before));
  return h("dl", { class: "figures" },
    one("Kernels", figure(figures.kernels), `from ${count(figures.operators, "operator")}`, address("launches")),
    one("Layout operators left", figure(figures.layout_operators.after), `of ${figure(figures.layout_operators.before)}`, address("left")),
    one("Bytes moved", bytes(figures.bytes_moved), figures.bytes_moved_before ? `of ${bytes(figures.bytes_moved_before)}, ${times(figures.bytes_moved_before / Math.max(1, figures.bytes_moved))} less` : "", address("launches")),
    one("Intermediates", bytes(memory.reused), memory.model ? `of ${bytes(memory.model)} in the model` : "", address("memory")),
    modelled === null ? null : one("Modelled", milliseconds(modelled), "all kernels, by the cost model", address("launches")),
    measured ? one("Measured", milliseconds(measured.median_ms), `${milliseconds(measured.min_ms)} to ${milliseconds(measured.max_ms)}, ${count(measured.runs, "run")}`, address("launches")) : null,
  );
}

function fates(plan) {
  const counts = new Map();
  plan.data.nodes.forEach((node) => counts.set(node.kind, (counts.get(node.kind) || 0) + 1));
  const parts = Object.keys(KINDS).filter((kind) => counts.has(kind)).map((kind) => ({ size: counts.get(kind), value: figure(counts.get(kind)), word: KINDS[kind].word, look: `kind ${kind}`, href: address("nodes", kind) }));
  if (!parts.length) return null;
  return h("section", null, h("h2", null, `What became of the ${count(plan.data.nodes.length, "node")}${plan.drawings.model ? " of the file" : ""}`),
    strip(parts.map((part) => ({ ...part, href: null, label: part.value, title: `${part.value} ${part.word}` })), "Nodes by what became of them"), legend(parts));
}

function timeline(plan) {
  const all = plan.data.launches.map((launch) => ({ launch, time: plan.time(launch) }));
  const known = all.filter((one) => one.time !== null);
  if (!known.length) return h("section", null, h("h2", null, "Where the time goes"), h("p", { class: "note" }, "No times are known: nothing was measured, and the cost model's times are not part of a saved plan."));
  const whole = known.reduce((sum, one) => sum + one.time, 0);
  const parts = known.map(({ launch, time }) => ({ size: time, colour: plan.formColour(launch.form), href: address("launch", launch.number), label: String(launch.number), title: `${launch.name}, ${plan.operators(launch)}: ${milliseconds(time)}, ${percent(time / whole)}` }));
  const forms = plan.forms.map((form) => ({ colour: plan.formColour(form), word: form, value: milliseconds(known.filter((one) => one.launch.form === form).reduce((sum, one) => sum + one.time, 0)) }));
  const slowest = [...known].sort((a, b) => b.time - a.time).slice(0, 5);
  return h("section", null, h("h2", null, `Where the time goes, ${plan.timeWord()}`),
    strip(parts, "Kernels in the order of execution, as wide as their times"), legend(forms),
    h("h3", null, "The slowest kernels"),
    h("ol", { class: "slowest" }, slowest.map(({ launch, time }) => h("li", null, launchLink(launch.number), h("span", { class: "slowest-what" }, plan.operators(launch)), meter(time, slowest[0].time, plan.formColour(launch.form)), h("span", { class: "figure" }, milliseconds(time))))));
}

function stagesStrip(figures) {
  const stages = Object.entries(figures.seconds).filter(([stage, seconds]) => !["total", "build"].includes(stage) && seconds > 0);
  if (!stages.length) return null;
  const total = stages.reduce((sum, [, seconds]) => sum + seconds, 0);
  const colour = (number) => `var(--form-${number % 8})`;
  const parts = stages.map(([stage, seconds], number) => ({ size: seconds, colour: colour(number), label: stage, title: `${stage}: ${milliseconds(seconds * 1000)}`, word: stage, value: milliseconds(seconds * 1000) }));
  return h("section", null, h("h2", null, `Planning took ${milliseconds(total * 1000)}`), strip(parts, "Stages of planning, as wide as their times"), legend(parts));
}

function checkWords(figures, measured) {
  const { check } = figures;
  return h("section", null, h("h2", null, "How far to trust it"), h("ul", { class: "plain spaced" },
    h("li", null, check ? [check.passed ? "The outputs agree with a reference's" : "The outputs were not shown to agree with a reference's", check.reference ? ` (${check.reference})` : "", "."] : ["The outputs were not compared with a reference's; ", h("code", null, "--check"), " does that."]),
    h("li", null, h("a", { href: address("rules") }, "The rules that took part"), " and what is known of their truth."),
    measured ? h("li", null, `Times are medians of ${count(measured.runs, "run")} on ${measured.device}, which reaches ${figure(Math.round(measured.gflops))} GFLOP/s and ${figure(Math.round(measured.gbytes_per_s))} GB/s at most.`) : h("li", null, "Nothing was measured."),
  ));
}
