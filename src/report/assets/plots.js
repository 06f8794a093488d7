// The plots. Each function gives {data, layout, height} from the runs as they are; draw() puts it onto the page and draws
// it anew when the colour scheme changes.
const drawn = [];

function axis(title, more = {}) {
  return {title: {text: title, font: {size: 12, color: cssColour("soft")}, standoff: 8}, gridcolor: cssColour("line"), zeroline: false,
          linecolor: cssColour("line-strong"), tickcolor: cssColour("line-strong"), automargin: true, ...more};
}

function layoutOf(height, more) {
  return {
    height, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: {l: 52, r: 12, t: 10, b: 42},
    font: {family: getComputedStyle(document.body).fontFamily, size: 12, color: cssColour("soft")}, showlegend: false,
    hoverlabel: {bgcolor: cssColour("ink"), bordercolor: "rgba(0,0,0,0)", align: "left",
                 font: {color: cssColour("page"), size: 12.5, family: getComputedStyle(document.body).fontFamily}},
    modebar: {bgcolor: "rgba(0,0,0,0)", color: cssColour("faint"), activecolor: cssColour("ink")},
    legend: {orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: {size: 12.5}}, ...more};
}

function draw(box, make) {
  const show = () => {
    const {data, layout} = make();
    return Plotly.react(box, data, layout, {responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"]});
  };
  drawn.push({box, show});
  return show();
}
const redrawAll = () => drawn.forEach(({show}) => show());
darkQuery.addEventListener("change", redrawAll);
// Labels are chosen by the room they have.
let drawnWidth = innerWidth, resizing = 0;
addEventListener("resize", () => {
  clearTimeout(resizing);
  resizing = setTimeout(() => { if (innerWidth !== drawnWidth) { drawnWidth = innerWidth; redrawAll(); } }, 200);
});

// At most about `most` points, keeping the smallest and largest of each interval, so that no spike is lost.
function thinned(xs, ys, most) {
  if (xs.length <= most) return {x: Array.from(xs), y: Array.from(ys)};
  const x = [], y = [], step = Math.ceil(xs.length / (most / 2));
  for (let begin = 0; begin < xs.length; begin += step) {
    let low = begin, high = begin;
    for (let i = begin; i < Math.min(begin + step, xs.length); ++i) {
      if (ys[i] < ys[low]) low = i;
      if (ys[i] > ys[high]) high = i;
    }
    for (const i of low < high ? [low, high] : high < low ? [high, low] : [low]) { x.push(xs[i]); y.push(ys[i]); }
  }
  return {x, y};
}

// Marks of a logarithmic axis at 1, 2 and 5 times the powers of ten.
function logAxis(title, values, more = {}) {
  const positive = values.filter(value => value > 0);
  const low = Math.min(...positive), high = Math.max(...positive);
  const marks = [];
  for (let power = Math.floor(Math.log10(low)) - 1; power <= Math.ceil(Math.log10(high)); ++power) marks.push(...[1, 2, 5].map(step => step * 10 ** power));
  const sparse = high / low > 300 ? marks.filter(mark => Math.abs(Math.log10(mark) - Math.round(Math.log10(mark))) < 1e-9) : marks;
  return axis(title, {type: "log", tickvals: sparse, ticktext: sparse.map(mark => mark >= 1 ? mark.toLocaleString("en") : String(Number(mark.toPrecision(1)))), ...more});
}

const columnTitle = column => column === "total_ms" ? "whole frame" : column.replace(/_ms$/, "");

function latencyOverFrames(column) {
  const data = runs.filter(run => run.frames[column]).map(run => {
    const points = thinned(run.frames.frame, run.frames[column], 4000);
    const many = points.x.length > 600;
    return {type: "scatter", mode: many ? "lines" : "lines+markers", name: plain(run.label), ...points,
            line: {color: runColour(run), width: many ? 1 : 1.6}, marker: {color: runColour(run), size: 3.5},
            hovertemplate: "frame %{x}: <b>%{y:.2f} ms</b><extra>" + plain(run.label) + "</extra>"};
  });
  const spread = spreadOf(column);
  return {data, layout: layoutOf(320, {showlegend: runs.length > 1, margin: {l: 56, r: 12, t: 8, b: 44},
    xaxis: axis("frame"), yaxis: spread.wide ? logAxis("ms", spread.ends) : axis("ms", {rangemode: "tozero"})})};
}

// Whether the runs' times lie so far apart that only a logarithmic axis shows them all.
function spreadOf(column) {
  const middles = runs.filter(run => run.frames.n && run.frames[column])
    .map(run => Float64Array.from(run.frames[column]).filter(Number.isFinite).sort()).filter(v => v.length)
    .map(values => [values[0], values[values.length >> 1], values[values.length - 1]]).filter(([least]) => least > 0);
  if (!middles.length) return {wide: false, ends: []};
  return {wide: Math.max(...middles.map(m => m[1])) / Math.min(...middles.map(m => m[1])) > 12, ends: middles.flat()};
}

function latencyEcdf(column) {
  const data = runs.filter(run => run.frames[column]).map(run => {
    const values = Float64Array.from(run.frames[column]).filter(Number.isFinite).sort();
    const n = values.length, step = Math.max(1, Math.floor(n / 1500)), x = [], y = [];
    for (let i = 0; i < n; i += step) { x.push(values[i]); y.push((i + 1) / n); }
    if (n && x[x.length - 1] !== values[n - 1]) { x.push(values[n - 1]); y.push(1); }
    return {type: "scatter", mode: "lines", name: plain(run.label), x, y, line: {color: runColour(run), width: 2, shape: "hv"},
            hovertemplate: "%{y:.1%} within <b>%{x:.2f} ms</b><extra>" + plain(run.label) + "</extra>"};
  });
  const levels = [0.5, 0.9, 0.99];
  return {data, layout: layoutOf(320, {showlegend: runs.length > 1, margin: {l: 52, r: 34, t: 8, b: 44},
    xaxis: spreadOf(column).wide ? logAxis("ms", spreadOf(column).ends) : axis("ms"), yaxis: axis("", {tickformat: ".0%", range: [0, 1.02]}),
    shapes: levels.map(level => ({type: "line", xref: "paper", x0: 0, x1: 1, y0: level, y1: level, line: {color: cssColour("faint"), width: 1, dash: "dot"}})),
    annotations: levels.map(level => ({xref: "paper", x: 1, xanchor: "left", xshift: 5, y: level, text: "p" + 100 * level, showarrow: false,
                                       font: {size: 11, color: cssColour("faint")}}))})};
}

const stageRow = (run, stage) => run.stages.find(row => row.stage === stage);

const workOf = run => run.stages.reduce((sum, row) => row.stage === "total" ? sum : sum + (row.mean_ms || 0), 0);
// The rest of a frame's latency; null where it is unknown.
function waitingOf(run) {
  const total = (stageRow(run, "total") || {}).mean_ms, share = run.result.waiting_share;
  return isNumber(total) && isNumber(share) ? total * share : null;
}

function stageShares() {
  const longest = Math.max(...runs.map(workOf)), room = sections.clientWidth, roomy = room > 700;
  const reach = longest * (roomy ? 1.2 : 1.02), pixelsPerMs = (room - (roomy ? 150 : 110)) / reach;
  const fits = (run, stage) => ((stageRow(run, stage) || {}).mean_ms || 0) * pixelsPerMs > 7.2 * stage.length + 6;
  const ends = !roomy ? [] : runs.map(run => ({x: workOf(run), y: run.index, xanchor: "left", xshift: 8, align: "left", showarrow: false, font: {size: 12, color: cssColour("soft")},
    text: `<b>${significant(workOf(run))} ms</b>` + (waitingOf(run) === null ? "" : `<br>+ ${significant(waitingOf(run))} ms in queues`)}));
  const data = stageNames.map(stage => ({type: "bar", orientation: "h", name: plain(stage), y: runs.map(run => run.index),
    x: runs.map(run => (stageRow(run, stage) || {}).mean_ms ?? null), marker: {color: colourOf(stage), line: {color: cssColour("card"), width: 1.5}},
    text: runs.map(run => fits(run, stage) ? plain(stage) : ""), textposition: "inside", insidetextanchor: "middle",
    textfont: {color: inkOn(colourOf(stage)), size: 11.5}, textangle: 0, constraintext: "none",
    customdata: runs.map(run => [plain(run.label), percent((stageRow(run, stage) || {}).share)]),
    hovertemplate: "%{customdata[0]}, <b>" + plain(stage) + "</b>: %{x:.2f} ms a frame, %{customdata[1]}<extra></extra>"}));
  return {data, layout: layoutOf(64 + 46 * runs.length, {barmode: "stack", bargap: 0.3, annotations: ends, xaxis: axis("mean time of a frame in the stages, ms", {range: [0, reach]}),
    yaxis: {tickvals: runs.map(run => run.index), ticktext: runs.map(run => plain(shorten(run.label, 22)) + " "), autorange: "reversed", automargin: true,
            tickfont: {color: cssColour("ink"), size: 12.5}}, margin: {l: 40, r: 12, t: 4, b: 42}})};
}

function stageQuantiles() {
  const data = runs.map(run => {
    const rows = stageNames.map(stage => stageRow(run, stage)).filter(Boolean);
    return {type: "bar", name: plain(run.label), x: rows.map(row => stageNames.indexOf(row.stage)), y: rows.map(row => row.p50_ms),
      marker: {color: runColour(run)}, error_y: {type: "data", symmetric: false, array: rows.map(row => Math.max(0, row.p99_ms - row.p50_ms)),
      arrayminus: rows.map(() => 0), color: cssColour("soft"), thickness: 1.2, width: 4},
      customdata: rows.map(row => [row.p90_ms, row.p99_ms, row.max_ms, row.count, plain(row.stage)]),
      hovertemplate: "<b>%{customdata[4]}</b>: p50 %{y:.3f} ms, p90 %{customdata[0]:.3f}, p99 %{customdata[1]:.3f}, max %{customdata[2]:.3f}; %{customdata[3]} times<extra>" + plain(run.label) + "</extra>"};
  });
  return {data, layout: layoutOf(290, {barmode: "group", bargap: 0.42, bargroupgap: 0.08, showlegend: runs.length > 1,
    xaxis: axis("", {tickvals: stageNames.map((stage, i) => i), ticktext: stageNames.map(stage => plain(shorten(stage, 16))), tickfont: {color: cssColour("ink"), size: 12.5}}), yaxis: logAxis("ms", runs.flatMap(run => run.stages.flatMap(row => row.stage === "total" ? [] : [row.p50_ms, row.p99_ms])))})};
}

// A stage alone against what the pipeline reached. All runs share one scale.
function limits(run) {
  const rows = run.limits.filter(row => isNumber(row.alone_fps));
  const {end_to_end_fps: reached, limit_fps: limit, slowest_stage_fps: slowest} = run.throughput;
  const cpu = run.throughput.cpu_ms_per_frame;
  const cores = run.throughput.cores;
  const bars = rows.map(row => ({name: row.stage, fps: row.alone_fps, colour: colourOf(row.stage), cpu: row.cpu_ms_per_frame}));
  if (cpu > 0 && isNumber(cores)) bars.push({name: "all on " + Number(cores.toPrecision(3)) + (cores === 1 ? " core" : " cores"), fps: 1000 * cores / cpu, colour: cssColour("faint"), cpu});
  const every = runs.flatMap(other => [...other.limits.map(row => row.alone_fps), other.throughput.end_to_end_fps, other.throughput.limit_fps]).filter(v => v > 0);
  const range = [Math.log10(Math.min(...every)) - 0.25, Math.log10(Math.max(...every)) + 0.35];
  const line = (x, dash) => ({type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line: {color: cssColour("ink"), width: 1.6, dash}});
  // Of the two lines the lesser has its words on the left.
  const label = (x, text, other) => ({x: Math.log10(x), xanchor: x < other ? "right" : "left", yref: "paper", y: 1, yanchor: "bottom", text: ` ${text} `, showarrow: false, font: {size: 12, color: cssColour("ink")}});
  const shapes = [], annotations = [];
  if (limit > 0) { shapes.push(line(limit, "dot")); annotations.push(label(limit, "limit " + significant(limit), reached > 0 ? reached : Infinity)); }
  if (reached > 0) { shapes.push(line(reached, "solid")); annotations.push(label(reached, "<b>reached " + significant(reached) + "</b>", limit > 0 ? limit + 1e-9 : 0)); }
  return {data: [{type: "bar", orientation: "h", y: bars.map((bar, i) => i), x: bars.map(bar => bar.fps), marker: {color: bars.map(bar => bar.colour)},
      text: bars.map(bar => significant(bar.fps)), textposition: "outside", textfont: {size: 11.5, color: cssColour("soft")}, cliponaxis: false,
      customdata: bars.map(bar => [isNumber(bar.cpu) ? significant(bar.cpu) : "?", plain(bar.name)]),
      hovertemplate: "<b>%{customdata[1]}</b>: %{x:.1f} FPS, %{customdata[0]} ms of CPU a frame<extra></extra>"}],
    layout: layoutOf(96 + 27 * bars.length, {bargap: 0.34, shapes, annotations, margin: {l: 40, r: 22, t: 26, b: 42},
      xaxis: axis("frames per second, logarithmic", {type: "log", range, dtick: 1, minor: {dtick: "D1", showgrid: false}}),
      yaxis: {autorange: "reversed", automargin: true, ticksuffix: " ", tickvals: bars.map((bar, i) => i), ticktext: bars.map(bar => plain(shorten(bar.name, 22))), tickfont: {color: cssColour("ink"), size: 12.5}}})};
}

const kTopLayers = 20;
function topLayers(run) {
  const rows = run.layers.filter(row => isNumber(row.mean_us)).sort((a, b) => b.mean_us - a.mean_us).slice(0, kTopLayers);
  return {data: [{type: "bar", orientation: "h", y: rows.map((row, i) => i), x: rows.map(row => row.mean_us / 1000), marker: {color: rows.map(row => typeColour(row.type))},
      text: rows.map(row => percent(row.share)), textposition: "outside", textfont: {size: 11, color: cssColour("faint")}, cliponaxis: false,
      customdata: rows.map(row => [plain(row.layer), plain(row.type), plain(row.shape || ""), significant(row.mean_us), significant(row.p99_us), significant(row.mflop), significant(row.gflops), plain(shorten(row.kernel || "", 70))]),
      hovertemplate: "<b>%{customdata[0]}</b><br>%{customdata[1]}, %{customdata[2]}<br>mean %{customdata[3]} µs, p99 %{customdata[4]} µs<br>%{customdata[5]} MFLOP at %{customdata[6]} GFLOP/s<br>in %{customdata[7]}<extra></extra>"}],
    layout: layoutOf(64 + 19 * rows.length, {bargap: 0.25, margin: {l: 40, r: 40, t: 4, b: 42}, xaxis: axis("mean time, ms"),
      yaxis: {autorange: "reversed", automargin: true, tickvals: rows.map((row, i) => i), ticktext: rows.map(row => plain(shortenMiddle(row.layer, 28)) + " "),
              tickfont: {size: 11, family: "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"}}})};
}

// One strip a queue, filled as far as the queue is: where waiting piles up is seen at once.
function queues(run) {
  const start = run.timeline.run[0] / 1e9, end = (run.timeline.run[1] - run.timeline.run[0]) / 1e9;
  const stageOf = counter => counter.name.replace(/^queue:/, "");
  const rank = counter => { const at = stageNames.indexOf(stageOf(counter)); return at < 0 ? stageNames.length : at; };
  const chosen = [...run.counters].sort((a, b) => rank(a) - rank(b));
  const strip = 1 / chosen.length, layout = {};
  // Queues share a scale, so that they compare; other counters are of different things.
  const shared = Math.max(1, Number(run.facts["pipeline.queue_capacity"]) || 0, ...chosen.flatMap(counter => counter.values.filter(isNumber)));
  const data = chosen.map((counter, i) => {
    const stage = stageOf(counter), colour = colourOf(stage);
    const top = 1 - i * strip;
    const most = run.isPipeline ? shared : Math.max(...counter.values.filter(isNumber), 1e-9);
    layout["yaxis" + (i ? i + 1 : "")] = axis("", {domain: [Math.max(0, top - 0.84 * strip), top], range: [0, most * 1.04], tickvals: [most / 2], ticks: "", showgrid: false, fixedrange: true,
      ticktext: [plain(run.isPipeline ? shorten(stage, 18) : shortenMiddle(stage, 34)) + " "], tickfont: {color: cssColour("ink"), size: 12.5}});
    return {type: "scatter", mode: "lines", name: plain(stage), x: [...counter.seconds.map(s => s - start), end], y: [...counter.values, counter.values[counter.values.length - 1]],
            yaxis: "y" + (i ? i + 1 : ""), fill: "tozeroy", fillcolor: colour + "66", line: {color: colour, width: 1.2, shape: "hv"},
            hovertemplate: "%{x:.3f} s: <b>%{y}</b> " + (run.isPipeline ? "of " + most + " before " : "") + plain(stage) + "<extra></extra>"};
  });
  return {data, layout: layoutOf(56 + 44 * chosen.length, {margin: {l: 40, r: 12, t: 6, b: 42}, ...layout,
    xaxis: axis("seconds since the run began", {range: [0, end], anchor: chosen.length > 1 ? "y" + chosen.length : "y"})})};
}
