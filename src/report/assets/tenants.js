// Sections of tenants: who met what, frame by frame, and who delayed whom.
let chosenRun = shownRuns[0];
const followers = [];  // what shows the chosen run
function choose(run) {
  chosenRun = run;
  for (const follow of followers) follow();
}
const runMenu = () => {
  if (shownRuns.length < 2) return null;
  const select = element("select", {"aria-label": "Which run"}, shownRuns.map(run => element("option", {value: run.index}, shorten(cellTitle(run.label), 80))));
  select.addEventListener("change", () => choose(tenantRuns[Number(select.value)]));
  const follow = () => { select.value = String(chosenRun.index); };
  followers.push(follow);
  follow();
  return [element("span", {}, "Run"), select];
};
// A place whose content is made anew for the chosen run.
function following(make) {
  const place = element("div");
  const show = () => place.replaceChildren(...[make(chosenRun)].flat(Infinity).filter(Boolean));
  followers.push(show);
  show();
  return place;
}
const tenantDot = tenant => element("span", {class: "dot", style: `background:${tenantColour(tenant)}`});

// Who misses most, who is in the way: the heading of a page of tenants.
function tenantsLead() {
  const rows = shownRuns.flatMap(run => run.data.summary.filter(row => isNumber(row.miss_share) && isNumber(row.deadline_ms)).map(row => ({...row, run})));
  const verdict = document.getElementById("verdict");
  verdict.replaceChildren();
  const worst = [...rows].sort((a, b) => b.miss_share - a.miss_share)[0];
  if (worst && worst.miss_share > 0) {
    verdict.append(element("b", {style: `color:${tenantColour(worst.tenant)}`}, worst.tenant), ` misses its deadline in ${percent(worst.miss_share)} of its frames`);
    const best = rows.filter(row => row.tenant === worst.tenant).sort((a, b) => a.miss_share - b.miss_share)[0];
    verdict.append(best.run !== worst.run ? `; at best, in ${percent(best.miss_share)}.` : ".");
  } else if (rows.length) {
    verdict.append("No tenant misses a deadline.");
  } else {
    verdict.append(`${tenantNames.length} tenant${tenantNames.length === 1 ? "" : "s"}, no deadlines.`);
  }
  const subtitle = document.getElementById("subtitle"), facts = runs.length ? runs[0].facts : {};
  const failed = tenantRuns.filter(run => run.status && run.status !== "success").length;
  const cores = facts["cpu.cores_allowed"] || facts["cpu.cores_online"];
  subtitle.replaceChildren(...[tenantRuns.length === 1 ? cellTitle(tenantRuns[0].label) : `${tenantRuns.length} runs`, failed ? `${failed} failed` : null, `tenants ${listOf(tenantNames)}`, facts["cpu.model"], cores ? cores + " cores" : null, timeText(facts["time.utc"] || "")]
    .filter(Boolean).map(word => element("span", {}, word)));
  const list = document.getElementById("answers");
  list.replaceChildren();
  if (worst) {
    choose(worst.run);
    for (const sentence of worst.run.data.sentences.slice(0, 3)) {
      const [name, ...rest] = sentence.split(": ");
      list.append(element("div", {}, element("dt", {}, name + (shownRuns.length > 1 ? ", " + cellTitle(worst.run.label) : "")), element("dd", {}, rest.join(": "))));
    }
  }
  // What must be said with results: the same of several runs once.
  const said = new Map();
  for (const run of tenantRuns) {
    for (const note of new Set(run.notes)) said.set(note, (said.get(note) || 0) + 1);
    if (run.reason) said.set(`${cellTitle(run.label)}: ${run.status}: ${run.reason}`, 1);
  }
  document.getElementById("caveats").append(...[...said].map(([note]) => element("p", {class: "caveat"}, note)));
}

const foldedNotes = notes => notes.length <= 3 ? notesOf(notes) : element("details", {}, element("summary", {}, `${notes.length} notes`), notesOf(notes));

function tenantsTable() {
  const rows = tenantRuns.flatMap(run => run.data ? run.data.summary.map(row => ({...row, run})) : [{run, tenant: null}]);
  const count = (key, title, help) => ({key, title, help, kind: "number"});
  const ms = (key, title, help) => ({key, title, help, kind: "number", cell: row => withUnit(significant(row[key]), "ms")});
  const columns = [
    {key: "tenant", title: "tenant", kind: "name", cell: row => row.tenant ? [tenantDot(row.tenant), row.tenant] : "–"},
    {key: "model", title: "model", kind: "code", cell: row => row.model || "–"},
    {key: "miss_share", title: "missed", help: "frames without a result in time, of all that were due", kind: "number", look: "big", cell: row => isNumber(row.deadline_ms) ? percent(row.miss_share) : "–"},
    ms("deadline_ms", "deadline", "from the sensor's stamp"), ms("p50_ms", "p50", "stamp to done"), ms("p99_ms", "p99", "stamp to done"), ms("max_ms", "max", "stamp to done"),
    count("frames", "due", "frames that were due"), count("finished", "done", "frames that finished"), count("late", "late", "finished after the deadline"),
    {key: "dropped", title: "dropped", help: "left out of a full queue, or replaced by a newer frame", kind: "number", cell: row => row.tenant ? cellText(row.dropped + row.overwritten) : "–"},
    {key: "failed", title: "failed", help: "failed, lost, or never sent", kind: "number", cell: row => row.tenant ? cellText(row.failed + row.lost + row.not_sent) : "–"}];
  if (tenantRuns.length > 1) columns.unshift({key: "run", title: "run", cell: row => row.run.data
    ? element("button", {type: "button", title: "show this run below", style: "text-align:left", onclick: () => choose(row.run)}, shortenMiddle(cellTitle(row.run.label), 44))
    : [cellTitle(row.run.label), element("div", {class: "dim"}, row.run.status || "")]});
  part("tenants", "Tenants", "Every tenant of every run. Missed counts all frames that were due and had no result in time: late ones, dropped ones, those that were never sent. Latency is from the sensor's stamp to the result.",
    tableOf(rows, columns), foldedNotes(shownRuns.flatMap(run => run.data.summaryNotes.map(note => shownRuns.length > 1 ? `${cellTitle(run.label)}: ${note}` : note))));
}

// Stacked parts of each frame's latency, a line at the deadline, crosses at frames that brought no result.
function framePlot(run, tenant) {
  const frames = run.data.frames[tenant], done = [], gone = [];
  for (let i = 0; i < frames.n; ++i) (frames.outcome[i] === "finished" ? done : gone).push(i);
  const shown = done.length <= kMostBars ? done : done.filter((_, i) => i % Math.ceil(done.length / kMostBars) === 0);
  const x = shown.map(i => frames.stamp_s[i]);
  const gap = x.length > 1 ? (x[x.length - 1] - x[0]) / (x.length - 1) : 0.1;
  const data = frameParts.filter(([key]) => shown.some(i => frames[key][i] > 0.005)).map(([key, title, colour]) => ({
    type: "bar", name: title, x, y: shown.map(i => frames[key][i]), width: gap * 0.92, marker: {color: colour, line: {width: 0}},
    customdata: shown.map(i => [frames.frame[i], significant(frames.latency_ms[i])]),
    hovertemplate: `<b>%{y:.2f} ms</b> ${title}<br>frame %{customdata[0]}: %{customdata[1]} ms<extra></extra>`}));
  const deadline = Math.max(...[...frames.deadline_ms].filter(isNumber), 0);
  const most = Math.max(deadline, ...shown.map(i => frames.latency_ms[i]), 1e-3);
  if (gone.length) data.push({type: "scatter", mode: "markers", name: "no result", x: gone.map(i => frames.stamp_s[i]), y: gone.map(() => most * 1.04), marker: {symbol: "x-thin", size: 6, line: {width: 1.4, color: "#d6336c"}},
    customdata: gone.map(i => [frames.frame[i], frames.outcome[i]]), hovertemplate: "frame %{customdata[0]}: %{customdata[1]}<extra></extra>"});
  const shapes = deadline > 0 ? [{type: "line", xref: "paper", x0: 0, x1: 1, y0: deadline, y1: deadline, line: {color: cssColour("ink"), width: 1.2, dash: "dot"}}] : [];
  const annotations = deadline > 0 ? [{xref: "paper", x: 1, xanchor: "right", y: deadline, yanchor: "bottom", showarrow: false, text: `deadline ${significant(deadline)} ms`, font: {size: 11, color: cssColour("ink")}}] : [];
  return {data, layout: layoutOf(250, {barmode: "stack", shapes, annotations, showlegend: false, margin: {l: 56, r: 12, t: 14, b: 42}, bargap: 0,
    xaxis: axis("stamp, s"), yaxis: axis("ms", {range: [0, most * 1.1]})})};
}
const kMostBars = 1200;

function tenantFramesSection() {
  const keys = element("div", {class: "keys"}, frameParts.map(([, title, colour]) => element("span", {}, element("i", {style: `background:${colour}`}), title)),
    element("span", {}, element("i", {style: "background:#d6336c"}), "× no result"));
  const boxes = following(run => Object.keys(run.data.frames).length ? tenantNames.filter(tenant => run.data.frames[tenant]).map(tenant => {
    const frames = run.data.frames[tenant], box = element("div", {class: "plot", role: "img", "aria-label": "Frames of " + tenant});
    const done = frames.outcome.filter(outcome => outcome === "finished").length;
    queueMicrotask(() => drawIn(box, () => framePlot(run, tenant)));
    return element("div", {class: "panel", style: "margin-top:14px"}, element("h3", {}, tenantDot(tenant), tenant), box,
      done > kMostBars ? element("p", {class: "note"}, `Every ${Math.ceil(done / kMostBars)}th of ${done.toLocaleString("en")} frames is drawn; delays_<i>.csv has them all.`) : null);
  }) : element("p", {class: "absent"}, "No frame was due in the measured window of this run."));
  part("frames", "Frames", "Each bar is a frame at the time of its stamp, stacked from the parts of its latency, which sum to it: communication (stamp to arrival), waiting in the tenant's queue, decoding, waiting for its turn on the device, ready without a free core, and the work itself. Above the dotted line it is late; a cross is a frame that was due and brought no result.",
    element("div", {class: "controls"}, runMenu(), keys), boxes);
}

// Plots that come and go with the chosen run: those that left the page are not drawn again. They are not purged: plotly
// may still be at work on them.
function drawIn(box, make) {
  for (let i = drawn.length - 1; i >= 0; --i) if (drawn[i].fleeting && !drawn[i].box.isConnected) drawn.splice(i, 1);
  if (!box.isConnected) return null;
  const done = draw(box, make), entry = drawn[drawn.length - 1], show = entry.show;
  entry.fleeting = true;
  entry.show = () => box.isConnected ? show() : null;
  return done;
}

// Rows: whose frames; columns: who held what they waited for; in ms a frame.
function blameHeat(table) {
  const by = table.columns.filter(name => name.startsWith("by_")), labels = by.map(name => name.slice(3));
  const rows = table.rows, z = rows.map(row => by.map(name => isNumber(row[name]) ? row[name] : 0));
  const most = Math.max(...z.flat(), 1e-9), dark = darkQuery.matches;
  return {data: [{type: "heatmap", z, x: labels.map(plain), y: rows.map(row => plain(row.tenant)), zmin: 0, zmax: most, xgap: 3, ygap: 3,
      colorscale: dark ? [[0, "#202329"], [0.5, "#8c4a3f"], [1, "#ff725c"]] : [[0, "#f4f2ed"], [0.5, "#ffb8aa"], [1, "#e0432a"]],
      colorbar: {title: {text: "ms a frame", font: {size: 11}}, thickness: 10, outlinewidth: 0, tickfont: {size: 11}},
      hovertemplate: "%{y} waited <b>%{z:.3f} ms</b> a frame for %{x}<extra></extra>"}],
    layout: layoutOf(110 + 46 * Math.max(1, rows.length), {margin: {l: 90, r: 12, t: 34, b: 12}, xaxis: axis("", {side: "top", showgrid: false, tickfont: {size: 12.5, color: cssColour("ink")}}),
      yaxis: axis("", {autorange: "reversed", showgrid: false, tickfont: {size: 12.5, color: cssColour("ink")}}),
      annotations: z.flatMap((row, i) => row.map((value, k) => ({x: k, y: i, text: value > 0 ? significant(value) : "", showarrow: false,
        font: {size: 12, color: value > 0.6 * most ? "#fff" : cssColour("ink")}})))})};
}

function blameSection() {
  if (!shownRuns.some(run => run.data.blame.all.rows.length)) return;
  let of = "all";
  const place = following(run => {
    const table = run.data.blame[of];
    if (!table.rows.length) return element("p", {class: "absent"}, of === "all" ? "No frame finished in this run." : "No such frames in this run.");
    const box = element("div", {class: "plot", role: "img", "aria-label": "Blame matrix"});
    queueMicrotask(() => drawIn(box, () => blameHeat(table)));
    const cells = [...run.data.resources].sort((a, b) => b.ns - a.ns).filter(row => row.ns > 0).slice(0, 12);
    return [box, element("div", {style: "margin-top:10px"}, run.data.sentences.map(text => element("p", {class: "note"}, text))),
      element("details", {}, element("summary", {}, "By resource"), tableOf(cells, [
        {key: "tenant", title: "frames of", kind: "name"}, {key: "by", title: "waited for", kind: "name"}, {key: "resource", title: "on", kind: "code"},
        {key: "ns", title: "on the critical path", kind: "number", cell: row => duration(row.ns)}, {key: "with_backlog_ns", title: "with backlog handed on", kind: "number", cell: row => duration(row.with_backlog_ns)},
        {key: "absorbed_ns", title: "delayed nothing", kind: "number", cell: row => duration(row.absorbed_ns)}, {key: "share", title: "share", kind: "number", cell: row => percent(row.share)}])),
      notesOf(table.notes)];
  });
  const again = value => { of = value; choose(chosenRun); };
  part("blame", "Who delayed whom", "A row is a tenant whose frames waited, a column is who held what they waited for: another tenant, itself (an earlier frame), the system, nobody, or somebody who is not recorded. The cells of a row sum to the measured delay a frame.",
    element("div", {class: "controls"}, runMenu(), segments([["all", "All frames"], ["misses", "Missed deadlines"], ["tail", "Tail"]], of, again, "Which frames")), place);
}
