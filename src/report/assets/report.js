// The page itself: sections in the order of the questions that a reader has.
const sections = document.getElementById("sections");

function part(id, title, how, ...content) {
  const made = element("section", {class: "part", id}, element("h2", {}, title), element("p", {class: "how"}, how), element("div", {class: "body"}, content));
  sections.append(made);
  document.getElementById("contents").append(element("a", {href: "#" + id}, title.split(",")[0]));
  return made;
}
const notesOf = texts => [...new Set(texts)].map(text => element("p", {class: "note"}, text));
const runName = run => element("h3", {}, element("span", {class: "dot", style: `background:${runColour(run)}`}), run.label);

// One panel a run with a plot in it; drawn after it stands on the page, since plotly measures it.
const waiting = [];
function plotBox(make, label) {
  const box = element("div", {class: "plot", role: "img", "aria-label": label});
  waiting.push(() => draw(box, make));
  return box;
}
const panels = (chosen, fill) => element("div", {class: "panels"}, chosen.map(run => element("div", {class: "panel"}, runs.length > 1 ? runName(run) : null, fill(run))));

function lead() {
  const rows = rowsOf(report.comparison);
  const best = rows.filter(row => isNumber(row.end_to_end_fps)).sort((a, b) => b.end_to_end_fps - a.end_to_end_fps)[0];
  const verdict = document.getElementById("verdict");
  if (best) {
    const clauses = [];
    const first = rows[0];
    if (best !== first && best.speedup > 1) clauses.push(`${times(best.speedup)} ${first.engine}`);
    if (isNumber(best.limit_share)) clauses.push(`${percent(best.limit_share)} of what this machine allows`);
    verdict.append(element("b", {style: `color:${runColours[rows.indexOf(best) % runColours.length]}`}, best.engine),
      ` finishes ${significant(best.end_to_end_fps)} frames a second end to end` + (clauses.length ? ": " + clauses.join(" and ") : "") + ".");
  } else {
    verdict.append(runs.reduce((sum, run) => sum + run.timeline.ranges, 0).toLocaleString("en") + " ranges on one timeline.");
  }
  const facts = runs[0].facts;
  const cores = facts["cpu.cores_allowed"] || facts["cpu.cores_online"];
  const words = [runs.length > 1 ? runs.length + " runs" : null, facts["input"] || facts["input.path"], facts["cpu.model"],
    cores ? cores + (cores === "1" ? " core" : " cores") : null, facts["os.name"], (facts["time.utc"] || "").replace("T", " ").replace(/:\d\dZ$/, " UTC")];
  document.getElementById("subtitle").append(...words.filter(Boolean).map(word => element("span", {}, word)));
}

function caveats() {
  const texts = [];
  const untrained = runs.filter(run => run.facts["model.trained"] === "false").map(run => run.label);
  if (untrained.length) texts.push("The weights are seeded, not trained: times are real, boxes are meaningless" + (untrained.length < runs.length ? ` (${untrained.join(", ")})` : "") + ".");
  for (const run of runs) {
    // The analyses' own notes say most losses; nothing is said twice.
    const said = report.comparison.notes.filter(note => note.startsWith(run.label + ":")).join(" ");
    if (run.dropped > 0 && !said.includes("dropped while recording")) texts.push(`${run.label}: ${run.dropped.toLocaleString("en")} records were dropped while recording.`);
    for (const [kind, count] of Object.entries(run.faults)) if (!said.includes(kind)) texts.push(`${run.label}: faults in the recording: ${count.toLocaleString("en")} × ${kind}.`);
  }
  const governor = runs[0].facts["cpu.governor"];
  if (governor && governor !== "performance") texts.push(`The CPU governor is "${governor}": clocks change under load, so times vary more than the work does.`);
  texts.push(...report.comparison.notes);
  document.getElementById("caveats").append(...texts.map(text => element("p", {class: "caveat"}, text)));
}

function comparison() {
  if (!rowsOf(report.comparison).some(row => isNumber(row.end_to_end_fps))) return;
  part("comparison", runs.length > 1 ? "Comparison" : "Result", "The limit is what the slowest stage alone, or all cores together, allow at best. A run near its limit has nothing left to gain from better overlap; a faster stage would be needed.",
    comparisonTable());
}

function latency() {
  const columns = [...new Set(runs.flatMap(run => run.frames.columns))];
  if (!runs.some(run => run.frames.n > 0) || !columns.length) return;
  let column = columns.includes("total_ms") ? "total_ms" : columns[0];
  const select = element("select", {"aria-label": "Which time"}, [...columns].sort((a, b) => (b === "total_ms") - (a === "total_ms")).map(name => element("option", {value: name}, columnTitle(name))));
  select.addEventListener("change", () => { column = select.value; drawn.filter(plot => plot.latency).forEach(plot => plot.show()); });
  const over = element("div", {class: "plot", role: "img", "aria-label": "Latency of each frame"});
  const ecdf = element("div", {class: "plot", role: "img", "aria-label": "Share of frames within a latency"});
  for (const [box, make] of [[over, latencyOverFrames], [ecdf, latencyEcdf]]) {
    waiting.push(() => {
      const done = draw(box, () => make(column));
      drawn[drawn.length - 1].latency = true;
      return done;
    });
  }
  part("latency", "Latency", "How long a frame takes from the start of its reading to the end of its writing, waiting in queues included. Left, frame after frame: steps and drifts show. Right, the share of frames that are done within a time.",
    element("div", {class: "controls"}, "Time of", select), element("div", {class: "panels"}, element("div", {class: "panel"}, over), element("div", {class: "panel"}, ecdf)));
}

function stages() {
  if (!runs.some(run => run.stages.length)) return;
  part("stages", "Stages", "Where the time of a frame goes, without waiting. Above, the mean of each stage; below, the median with a whisker up to the 99th percentile, on a logarithmic axis: a long whisker is a stage that is sometimes late.",
    plotBox(stageShares, "Mean time by stage"), plotBox(stageQuantiles, "Median and 99th percentile by stage"),
    element("details", {}, element("summary", {}, "All figures"), panels(runs, stageTable)));
}

function limitCharts() {
  const chosen = runs.filter(run => run.limits.length);
  if (!chosen.length) return;
  part("limits", "Limits", "Each bar is a stage run by itself, flat out; the lowest is what the pipeline cannot outrun. The last bar is what the cores allow when all stages share them. The solid line is what was reached.",
    panels(chosen, run => plotBox(() => limits(run), "Limits of " + run.label)), notesOf(chosen.flatMap(run => run.notes.filter(note => /limit|alone/i.test(note)))));
}

function layers() {
  const chosen = runs.filter(run => run.layers.some(row => isNumber(row.mean_us)));
  if (chosen.length) {
    const types = [...new Set(chosen.flatMap(run => run.layers.filter(row => isNumber(row.mean_us)).map(row => row.type)))];
    part("layers", "Layers", `The ${kTopLayers} layers of the model that take the most time, coloured by what they do. Where an engine fused several into one kernel, its time is shared out among them.`,
      element("div", {class: "keys"}, types.map(type => element("span", {}, element("i", {style: `background:${typeColour(type)}`}), type))),
      element("div", {style: "height:14px"}), panels(chosen, run => plotBox(() => topLayers(run), "Slowest layers of " + run.label)),
      notesOf(chosen.flatMap(run => run.notes.filter(note => !/limit|alone/i.test(note)).map(note => `${run.label}: ${note}`)).filter(note => !report.comparison.notes.includes(note))));
  }
  const fused = runs.filter(run => run.fusion.length);
  if (!fused.length) return;
  let run = fused[fused.length - 1], sought = "", all = false;
  const more = element("button", {type: "button", style: "margin-top:12px", onclick: () => { all = true; show(); }});
  const place = element("div"), said = element("p", {class: "note"});
  const show = () => {
    const rows = run.fusion.filter(row => !sought || `${row.kernel} ${row.type} ${row.layers} ${row.implementation}`.toLowerCase().includes(sought))
      .sort((a, b) => (b.mean_us || 0) - (a.mean_us || 0));
    const shown = all || sought ? rows : rows.slice(0, kFirstKernels);
    more.hidden = shown.length === rows.length;
    more.textContent = `Show all ${rows.length} kernels`;
    place.replaceChildren(rows.length ? fusionTable(shown) : element("p", {class: "absent"}, "No kernel has this in its name."));
    const together = run.fusion.filter(row => row.layer_count > 1);
    said.textContent = `${run.fusion.length} kernels, ${together.length} of them hold more than one layer.` + (isNumber(run.fusionCoverage) ? ` ${percent(run.fusionCoverage)} of the model's layers are found in some kernel.` : "");
  };
  const search = element("input", {type: "search", placeholder: "Find a kernel or layer", "aria-label": "Find a kernel or layer", oninput: event => { sought = event.target.value.toLowerCase(); show(); }});
  show();
  part("fusion", "Fusion", "What the engine really executed, slowest first, and which layers of the model went into each kernel.",
    element("div", {class: "controls"}, fused.length > 1 ? segments(fused.map(other => [other, other.label]), run, chosenRun => { run = chosenRun; show(); }, "Run") : null, search),
    place, more, said);
}

const kFirstKernels = 10;

function queueCharts() {
  const chosen = runs.filter(run => run.counters.length);
  if (!chosen.length) return;
  part("queues", "Queues", "How many batches wait before a stage. A queue that stays full stands before the stage that sets the pace; one that stays empty feeds a stage that starves.",
    panels(chosen, run => plotBox(() => queues(run), "Queue depths of " + run.label)));
}

const kFactTitles = {"cpu.model": "Processor", "cpu.cores_allowed": "Cores this process may use", "cpu.cores_online": "Cores online", "cpu.governor": "Governor", "cpu.mhz_max": "Highest clock, MHz",
  "cpu.l2_kib": "L2 cache, KiB", "cpu.l3_kib": "L3 cache, KiB", "cpu.features": "Instruction sets", "memory.total_mib": "Memory, MiB", "memory.available_mib": "Memory free at the start, MiB",
  "os.name": "System", "os.kernel": "Kernel", "host.virtualised": "Virtual machine", "strobe.version": "Strobe", "strobe.revision": "Revision", "strobe.build": "Build", "compiler": "Compiler",
  "time.utc": "Time", "model.trained": "Trained weights", "engine": "Engine", "engine.version": "Engine version"};

function machine() {
  const keys = [...new Set(runs.flatMap(run => Object.keys(run.facts)))];
  if (!keys.length) return;
  const order = Object.keys(kFactTitles);
  const rank = key => order.includes(key) ? order.indexOf(key) : order.length;
  keys.sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  const same = keys.filter(key => runs.every(run => run.facts[key] === runs[0].facts[key]));
  const differ = keys.filter(key => !same.includes(key));
  const entry = key => element("div", {class: runs[0].facts[key].length > 60 ? "wide" : null}, element("dt", {title: key}, kFactTitles[key] || key), element("dd", {}, runs[0].facts[key]));
  part("machine", "Machine and settings", runs.length > 1 ? "What all runs share, then what differs between them." : "What the run was made on and with.",
    element("dl", {class: "facts"}, same.map(entry)),
    differ.length ? element("div", {style: "margin-top:26px"}, tableOf(differ, [{key: "", title: "differs", kind: "code", cell: key => element("span", {title: key}, kFactTitles[key] || key)},
      ...runs.map(run => ({key: run.label, title: run.label, kind: "code", cell: key => run.facts[key] ?? "–"}))])) : null);
}

function followContents() {
  const links = [...document.querySelectorAll("#contents a")];
  const watcher = new IntersectionObserver(entries => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links) link.classList.toggle("here", link.hash === "#" + entry.target.id);
    }
  }, {rootMargin: "-20% 0px -70% 0px"});
  for (const section of document.querySelectorAll("section.part")) watcher.observe(section);
}

lead();
caveats();
comparison();
const timelineView = timelineSection();
latency();
stages();
limitCharts();
layers();
queueCharts();
machine();
followContents();
document.getElementById("foot").textContent = "Strobe " + report.version;
await Promise.all(waiting.map(put => put()));
// For tests: the page stands, so many plots were drawn, and so many boxes are on the timeline.
document.documentElement.dataset.strobePlots = String(drawn.filter(({box}) => box.querySelector("svg.main-svg .cartesianlayer .trace path")).length);
document.documentElement.dataset.strobeBoxes = String(timelineView ? timelineView.boxes : 0);
document.documentElement.dataset.strobeReady = "1";
