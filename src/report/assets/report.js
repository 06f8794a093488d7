// The page itself: sections in the order of the questions that a reader has.
const sections = document.getElementById("sections");

function part(id, title, how, ...content) {
  const made = element("section", {class: "part", id}, element("h2", {}, title), element("p", {class: "how"}, how), element("div", {class: "body"}, content));
  sections.append(made);
  document.getElementById("contents").append(element("a", {href: "#" + id}, title.split(",")[0]));
  return made;
}
const notesOf = texts => [...new Set(texts)].map(text => element("p", {class: "note"}, text));
// The same note of several runs is said once; what stands at the top of the page is not said again.
function notesByRun(chosen, of) {
  const by = new Map();
  for (const run of chosen)
    for (const note of new Set(of(run))) if (!report.comparison.notes.includes(`${run.label}: ${note}`)) by.set(note, [...(by.get(note) || []), run.label]);
  return notesOf([...by].map(([note, labels]) => runs.length > 1 && labels.length < runs.length ? `${labels.join(", ")}: ${note}` : note[0].toUpperCase() + note.slice(1)));
}
const runName = run => element("h3", {}, element("span", {class: "dot", style: `background:${runColour(run)}`}), run.label);

// One panel a run with a plot in it; drawn after it stands on the page, since plotly measures it.
const waiting = [];
function plotBox(make, label) {
  const box = element("div", {class: "plot", role: "img", "aria-label": label});
  waiting.push(() => draw(box, make));
  return box;
}
// Three beside each other where that leaves no hole.
const panels = (chosen, fill) => element("div", {class: chosen.length % 3 === 0 || chosen.length > 4 ? "panels thirds" : "panels"}, chosen.map(run => element("div", {class: "panel"}, runs.length > 1 ? runName(run) : null, fill(run))));

// Above this a run was faster than its limit by more than noise.
const kNoise = 1.05;

function lead() {
  const rows = runs.map(run => run.result);
  const best = rows.filter(row => isNumber(row.end_to_end_fps)).sort((a, b) => b.end_to_end_fps - a.end_to_end_fps)[0];
  const verdict = document.getElementById("verdict");
  if (best) {
    const clauses = rows.filter(row => row !== best && row.end_to_end_fps > 0).slice(0, 3).map(row => `${times(best.end_to_end_fps / row.end_to_end_fps)} ${row.engine}`);
    if (isNumber(best.limit_share) && best.limit_share <= kNoise) clauses.push(`${percent(best.limit_share)} of what this machine allows`);
    const run = runs[rows.indexOf(best)];
    verdict.append(element("b", {style: `color:${runColour(run)}`}, best.engine),
      ` ${run.facts.mode === "retrain" ? "trains on" : "finishes"} ${significant(best.end_to_end_fps)} frames a second end to end` + (clauses.length ? ": " + listOf(clauses) : "") + ".");
    answers(run);
  } else {
    verdict.append(runs.reduce((sum, run) => sum + run.timeline.ranges, 0).toLocaleString("en") + " ranges on one timeline.");
  }
  const facts = runs[0].facts;
  const cores = facts["cpu.cores_allowed"] || facts["cpu.cores_online"];
  const picture = [(facts["input.size"] || "").replace("x", " × "), facts["input.codec"]].filter(Boolean).join(" ");
  const words = [runs.length > 1 ? runs.length + " runs" : null, picture, isNumber(rows[0].frames) && runs[0].isPipeline ? rows[0].frames.toLocaleString("en") + " frames" : null, facts["cpu.model"],
    cores ? cores + (cores === "1" ? " core" : " cores") : null, facts["os.name"], timeText(facts["time.utc"] || "")];
  document.getElementById("subtitle").append(...words.filter(Boolean).map(word => element("span", {}, word)));
}

// What limits the fastest run and where its time is: sentences made of its figures, left out where they are unknown.
function answers(run) {
  const row = run.result, through = run.throughput, of = runs.length > 1 ? " " + run.label : "";
  const bold = text => element("b", {}, text), made = [];
  const say = (title, ...words) => made.push(element("div", {}, element("dt", {}, title), element("dd", {}, words)));
  const others = run.limits.filter(other => other.stage !== through.slowest_stage && isNumber(other.alone_fps)).sort((a, b) => a.alone_fps - b.alone_fps);
  const next = others.length ? ` The next slowest stage, ${others[0].stage}, does ${significant(others[0].alone_fps)}.` : "";
  const limits = "What limits" + (of || " it");
  if (row.limited_by === "cores") {
    say(limits, bold("All cores together"), `: a frame costs ${significant(through.cpu_ms_per_frame)} ms of CPU, so ${coresText(through.cores)} allow ${significant(row.limit_fps)} FPS.`
      + ` The slowest stage alone, ${through.slowest_stage}, does ${significant(through.slowest_stage_fps)}.`);
  } else if (row.limited_by && isNumber(row.limit_fps)) {
    say(limits, bold("The stage " + row.limited_by), `: alone it does ${significant(row.limit_fps)} FPS.` + next);
  } else if (row.limited_by) {
    say(limits, bold("The stage " + row.limited_by), " was the slowest of the run. No stage was run alone, so no limit is known.");
  }
  const work = workOf(run), waiting = waitingOf(run), heaviest = run.stages.filter(stage => stage.stage !== "total").sort((a, b) => b.mean_ms - a.mean_ms)[0];
  if (heaviest && work > 0) {
    say("Where a frame's time goes", ...(waiting === null ? [] : [bold(percent(row.waiting_share) + " waiting in queues"), ` (${significant(waiting)} of ${significant(stageRow(run, "total").mean_ms)} ms on average). `]),
      `Of the ${significant(work)} ms of work, ${heaviest.stage} takes ${percent(heaviest.mean_ms / work)}.`);
  }
  if (isNumber(row.cores_busy)) {
    const {cpu_ms_per_frame: together, cpu_alone_ms_per_frame: alone} = through;
    say("What the cores do", bold(`Busy ${percent(Math.min(1, row.cores_busy))} of the time`), " with this run.",
      isNumber(alone) && isNumber(together) ? ` A frame costs ${significant(together)} ms of CPU, ${significant(alone)} ms with each stage by itself${together > 1.05 * alone ? ": side by side they slow each other down" : ""}.` : "");
  }
  document.getElementById("answers").append(...made);
}
const coresText = cores => `${Number(cores.toPrecision(3))} ${cores === 1 ? "core" : "cores"}`;
const timeText = utc => utc.replace("T", " ").replace(/:\d\dZ$/, " UTC");

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
  for (const {result: row} of runs)
    if (row.limit_share > kNoise) texts.push(`${row.engine} reached ${percent(row.limit_share)} of its limit, which cannot be: other work disturbed one of the two measurements. Measure again on a quiet machine.`);
  const unlike = [["input", "input"], ["model", "model"], ["input.size", "picture size"]].filter(([key]) => new Set(runs.map(run => run.facts[key]).filter(Boolean)).size > 1).map(([, name]) => name);
  if (unlike.length) texts.push(`These runs differ in ${listOf(unlike)}: their figures are not of the same work.`);
  const governor = runs[0].facts["cpu.governor"];
  if (governor && governor !== "performance") texts.push(`The CPU governor is "${governor}": clocks change under load, so times vary more than the work does.`);
  texts.push(...report.comparison.notes);
  document.getElementById("caveats").append(...texts.map(text => element("p", {class: "caveat"}, text)));
}

function comparison() {
  if (!rowsOf(report.comparison).some(row => isNumber(row.end_to_end_fps))) return;
  part("comparison", runs.length > 1 ? "Comparison" : "Result", "Solid bar: what was reached end to end. Pale bar: inference alone. Tick: the limit, which the slowest stage alone or all cores together allow at best; a run close to it gains nothing from better overlap, only from less work. p50 to max: latency of a whole frame.",
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
  if (!runs.some(run => run.isPipeline && run.stages.length)) return;
  part("stages", "Stages", "What a frame costs. Above, its mean time in each stage, and beside it what it waits in queues; below, the median with a whisker up to the 99th percentile, on a logarithmic axis: a long whisker is a stage that is sometimes late.",
    plotBox(stageShares, "Mean time by stage"), plotBox(stageQuantiles, "Median and 99th percentile by stage"),
    element("details", {}, element("summary", {}, "All figures"), panels(runs, stageTable)));
}

function limitCharts() {
  const chosen = runs.filter(run => run.limits.length);
  if (!chosen.length) return;
  part("limits", "Limits", "Each bar is a stage run by itself, flat out; the lowest is what the pipeline cannot outrun. The last bar is what the cores allow when all stages share them. The solid line is what was reached, the dotted one the limit.",
    panels(chosen, run => plotBox(() => limits(run), "Limits of " + run.label)), notesByRun(chosen, run => run.limitNotes));
}

function layers() {
  const chosen = runs.filter(run => run.layers.some(row => isNumber(row.mean_us)));
  if (chosen.length) {
    const types = [...new Set(chosen.flatMap(run => run.layers.filter(row => isNumber(row.mean_us)).map(row => row.type)))];
    part("layers", "Layers", `The ${kTopLayers} layers of the model that take the most time, coloured by what they do. Where an engine fused several into one kernel, its time is shared out among them.`,
      element("div", {class: "keys"}, types.map(type => element("span", {}, element("i", {style: `background:${typeColour(type)}`}), type))),
      element("div", {style: "height:14px"}), panels(chosen, run => plotBox(() => topLayers(run), "Slowest layers of " + run.label)),
      notesByRun(chosen, run => run.layerNotes));
  }
  const fused = runs.filter(run => run.fusion.length);
  if (!fused.length) return;
  const joined = of => of.fusion.filter(row => row.layer_count > 1).length;
  let run = [...fused].sort((a, b) => joined(b) - joined(a))[0], sought = "", all = false;
  const more = element("button", {type: "button", style: "margin-top:12px", onclick: () => { all = true; show(); }});
  const place = element("div"), said = element("p", {class: "note"});
  const show = () => {
    const typeOf = new Map(run.layers.map(row => [row.layer, row.type]));
    const rows = run.fusion.filter(row => !sought || `${row.kernel} ${row.type} ${row.layers} ${row.implementation}`.toLowerCase().includes(sought))
      .sort((a, b) => (b.mean_us || 0) - (a.mean_us || 0));
    const shown = all || sought ? rows : rows.slice(0, kFirstKernels);
    more.hidden = shown.length === rows.length;
    more.textContent = `Show all ${rows.length} kernels`;
    place.replaceChildren(rows.length ? fusionTable(shown, typeOf) : element("p", {class: "absent"}, "No kernel has this in its name."));
    said.textContent = `${run.fusion.length} kernels, ${joined(run)} of them with more than one layer.` + (isNumber(run.fusionCoverage) ? ` They hold ${percent(run.fusionCoverage)} of the model's layers${run.fusionCoverage < 1 ? "; the others were folded away or are not named by the engine" : ""}.` : "");
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
  if (!chosen.some(run => run.isPipeline))
    part("queues", "Counters", "What was counted while the program ran.", panels(chosen, run => plotBox(() => queues(run), "Counters of " + run.label)));
  else part("queues", "Queues", "How many batches wait before each stage: a strip is filled where its queue is full. The last queue that stays full stands before the stage that sets the pace; one that stays empty feeds a stage that starves.",
    panels(chosen, run => plotBox(() => queues(run), "Queue depths of " + run.label)));
}

// Titled tables that need no picture of their own.
function analyses() {
  const chosen = runs.filter(run => run.answers.length);
  if (!chosen.length) return;
  const columnsOf = (table, rows) => table.columns.map(({name, help}) => {
    const isText = rows.some(row => typeof row[name] === "string");
    const isTime = name.endsWith("_ns");
    return {key: name, title: name.replace(/_ns$/, "").replaceAll("_", " "), help, kind: isText ? "code" : "number",
            cell: row => isText ? element("div", {style: "min-width:16em", title: row[name]}, shortenMiddle(cellText(row[name]), kLongestCell))
              : isTime && isNumber(row[name]) ? duration(row[name])
              : kNumbers.has(name) && isNumber(row[name]) ? String(row[name]) : cellText(row[name])};
  });
  const shown = run => [runs.length > 1 ? runName(run) : null, run.answers.map(table => {
    const rows = rowsOf(table);
    return [element("h3", {style: "margin-top:18px"}, table.title), tableOf(rows, columnsOf(table, rows)), notesOf(table.notes)];
  })];
  // Of many runs of tenants each stands behind a fold: their figures are together above.
  const folded = run => tenantRuns.length > 1 ? element("details", {}, element("summary", {}, run.label), shown(run)) : shown(run);
  part("analyses", "Analyses", `What strobe explain says of ${chosen.length > 1 ? "each" : "this"} trace.`, chosen.map(folded));
}
const kLongestCell = 90;
const kNumbers = new Set(["pid", "tid", "parent", "process", "stream", "device"]);  // names, not amounts

const mib = text => Number(text) >= 2048 ? significant(Number(text) / 1024) + " GiB" : text + " MiB";
const kib = text => Number(text) >= 1024 ? Number((Number(text) / 1024).toFixed(1)) + " MiB" : text + " KiB";
const yesNo = text => ({true: "yes", false: "no"})[text] || text;
// What a reader asks for first: title and, where the value needs it, how it is written. Other facts stand behind a fold.
const kFacts = {"cpu.model": ["Processor"], "cpu.cores_allowed": ["Cores that the run may use"], "cpu.governor": ["Governor"], "cpu.l2_kib": ["L2 cache", kib], "cpu.l3_kib": ["L3 cache", kib],
  "memory.total_mib": ["Memory", mib], "os.name": ["System"], "os.kernel": ["Kernel"], "host.virtualised": ["Virtual machine", yesNo], "host.container": ["Container"], "time.utc": ["Time", timeText],
  "input": ["Input"], "input.size": ["Picture", text => text.replace("x", " × ")], "input.codec": ["Codec"], "input.fps": ["Frames per second of the input", text => significant(Number(text))],
  "model": ["Model"], "model.weights": ["Weights"], "model.trained": ["Trained weights", yesNo], "engine": ["Engine"], "engine.version": ["Engine version"], "engine.variant": ["Variant"], "precision": ["Precision"],
  "pipeline.batch": ["Batch"], "pipeline.sessions": ["Inferences at the same time"], "pipeline.threads_per_session": ["Threads of each"], "pipeline.queue_capacity": ["Queue capacity"],
  "strobe.version": ["Strobe"], "strobe.revision": ["Revision"], "strobe.build": ["Build"], "compiler": ["Compiler"], "cpu.features": ["Instruction sets"]};

function machine() {
  const keys = [...new Set(runs.flatMap(run => Object.keys(run.facts)))];
  if (!keys.length) return;
  const order = Object.keys(kFacts);
  const value = (run, key) => !(key in run.facts) ? "–" : ((kFacts[key] || [])[1] || String)(run.facts[key]);
  const shared = key => runs.every(run => run.facts[key] === runs[0].facts[key]);
  const first = order.filter(key => keys.includes(key)), rest = keys.filter(key => !kFacts[key]).sort();
  const entry = key => element("div", {class: value(runs[0], key).length > 60 ? "wide" : null}, element("dt", {title: key}, (kFacts[key] || [key])[0]), element("dd", {}, value(runs[0], key)));
  const differing = chosen => !chosen.length ? null : element("div", {style: "margin-top:22px"}, tableOf(chosen, [{key: "", title: "differs", cell: key => element("span", {title: key}, (kFacts[key] || [key])[0])},
    ...runs.map(run => ({key: run.label, title: run.label, kind: "wrap", cell: key => value(run, key)}))]));
  const both = chosen => [element("dl", {class: "facts"}, chosen.filter(shared).map(entry)), differing(chosen.filter(key => !shared(key)))];
  part("machine", "Machine and settings", runs.length > 1 ? "What all runs share, then what differs between them." : "What the run was made on and with.",
    both(first), rest.length ? element("details", {}, element("summary", {}, "Further facts"), element("div", {style: "margin-top:14px"}, both(rest))) : null);
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
if (tenantRuns.length) {
  tenantsLead();
  tenantsTable();
}
if (shownRuns.length) {
  tenantFramesSection();
  blameSection();
  gridSection();
  effectsSection();
  variationSection();
  sceneSection();
}
comparison();
const timelineView = timelineSection();
latency();
stages();
limitCharts();
layers();
queueCharts();
analyses();
machine();
followContents();
document.getElementById("foot").textContent = "Strobe " + report.version;
await Promise.all(waiting.map(put => put()));
// Paper is white: plots and timeline take the colours of the light page.
matchMedia("print").addEventListener("change", () => { redrawAll(); if (timelineView) timelineView.draw(); });
// For tests: the page stands, so many plots were drawn, and so many boxes are on the timeline.
document.documentElement.dataset.strobePlots = String(drawn.filter(({box}) => box.querySelector("svg.main-svg .cartesianlayer .trace path")).length);
document.documentElement.dataset.strobeBoxes = String(timelineView ? timelineView.boxes : 0);
document.documentElement.dataset.strobeReady = "1";
