// What the runs of an experiment show together: bars by run, what variation comes from, what each factor changes.

// Mean with the range, or the spread, of each run by tenant: the bars of priorities, policies and whatever else varies.
function gridBars(rows, kind) {
  const order = [...new Set(rows.map(row => row.run))], labels = order.map(run => plain(shortenMiddle(cellTitle(run), order.length > 10 ? 34 : 46)));
  const data = tenantNames.map(tenant => {
    const of = order.map(run => rows.find(row => row.run === run && row.tenant === tenant) || {});
    const value = row => kind === "range" ? row.range_ms : kind === "std" ? row.std_ms : row.mean_ms;
    const whisker = kind === "mean" ? {error_x: {type: "data", symmetric: false, thickness: 1, width: 3, color: cssColour("soft"),
      array: of.map(row => isNumber(row.max_ms) ? row.max_ms - row.mean_ms : 0), arrayminus: of.map(row => isNumber(row.min_ms) ? row.mean_ms - row.min_ms : 0)}} : {};
    return {type: "bar", orientation: "h", name: plain(tenant), y: labels.map((_, i) => i), x: of.map(row => value(row) ?? null), marker: {color: tenantColour(tenant)}, ...whisker,
      customdata: of.map(row => [significant(row.mean_ms), significant(row.min_ms), significant(row.max_ms), significant(row.std_ms), cellText(row.frames), plain(cellTitle(row.run || ""))]),
      hovertemplate: "<b>" + plain(tenant) + "</b> %{customdata[5]}<br>mean %{customdata[0]} ms, %{customdata[1]} to %{customdata[2]} ms<br>standard deviation %{customdata[3]} ms, %{customdata[4]} frames<extra></extra>"};
  });
  const title = {mean: "mean latency, ms; whiskers from the least to the greatest", range: "greatest - least latency, ms", std: "standard deviation of the latency, ms"}[kind];
  return {data, layout: layoutOf(90 + order.length * (12 + 15 * tenantNames.length), {barmode: "group", bargap: 0.3, showlegend: true, margin: {l: 60, r: 16, t: 26, b: 42}, xaxis: axis(title, {rangemode: "tozero"}),
    yaxis: axis("", {autorange: "reversed", tickvals: labels.map((_, i) => i), ticktext: labels.map(text => text + " "), showgrid: false, tickfont: {size: 11.5, color: cssColour("ink")}})})};
}

// Boxes of the levels of a factor, by tenant: quartiles, least and greatest, mean.
function levelBoxes(rows) {
  const levels = [...new Set(rows.map(row => row.level))];
  const data = tenantNames.map(tenant => {
    const of = levels.map(level => rows.find(row => row.level === level && row.tenant === tenant)).filter(Boolean);
    return {type: "box", name: plain(tenant), x: of.map(row => plain(shorten(row.level, 24))), lowerfence: of.map(row => row.min_ms), q1: of.map(row => row.p25_ms), median: of.map(row => row.p50_ms), q3: of.map(row => row.p75_ms), upperfence: of.map(row => row.max_ms), mean: of.map(row => row.mean_ms),
      marker: {color: tenantColour(tenant)}, line: {width: 1.4}, fillcolor: tenantColour(tenant) + "44", whiskerwidth: 0.5};
  });
  return {data, layout: layoutOf(320, {boxmode: "group", showlegend: tenantNames.length > 1, margin: {l: 56, r: 12, t: 26, b: 50}, xaxis: axis("", {type: "category", showgrid: false}), yaxis: axis("latency, ms", {rangemode: "tozero"})})};
}

const signed = value => isNumber(value) ? (value > 0 ? "+" : "") + significant(value) : "–";
const change = value => isNumber(value) ? (value > 0 ? "+" : "") + value.toFixed(1) + "%" : "–";

function gridSection() {
  const rows = gridTable("cells").filter(row => row.frames > 0);
  if (!rows.length) return;
  let kind = "mean";
  const place = element("div");
  const show = () => {
    const box = element("div", {class: "plot", role: "img", "aria-label": "Latency by run"});
    place.replaceChildren(box);
    queueMicrotask(() => drawIn(box, () => gridBars(rows, kind)));
  };
  show();
  part("grid", "Grid", "Latency of each tenant in each run, stamp to result. No outlier is left out: a range without its tail would hide what is studied.",
    element("div", {class: "controls"}, segments([["mean", "Mean"], ["range", "Range"], ["std", "Spread"]], kind, value => { kind = value; show(); }, "Which figure")), place);
}

// Differences with their intervals, one row each, zero marked: what lies wholly on one side is more than noise.
function effectPlot(rows) {
  const labels = rows.map(row => plain(`${row.tenant}: ${shorten(row.factor, 28)} ${shorten(row.level, 22)} `));
  return {data: [{type: "scatter", mode: "markers", y: rows.map((_, i) => i), x: rows.map(row => row.difference_ms), marker: {size: 8, color: rows.map(row => tenantColour(row.tenant))},
      error_x: {type: "data", symmetric: false, thickness: 1.6, width: 4, color: cssColour("soft"), array: rows.map(row => row.high_ms - row.difference_ms), arrayminus: rows.map(row => row.difference_ms - row.low_ms)},
      customdata: rows.map(row => [plain(row.reference), signed(row.difference_ms), significant(row.low_ms), significant(row.high_ms), row.pairs, change(row.change), plain(row.level)]),
      hovertemplate: "<b>%{customdata[6]}</b> instead of %{customdata[0]}: %{customdata[1]} ms (%{customdata[5]})<br>95 %: %{customdata[2]} to %{customdata[3]} ms, %{customdata[4]} pairs of runs<extra></extra>"}],
    layout: layoutOf(70 + 24 * rows.length, {margin: {l: 60, r: 16, t: 6, b: 42}, xaxis: axis("difference, ms", {zeroline: true, zerolinecolor: cssColour("ink"), zerolinewidth: 1}),
      yaxis: axis("", {autorange: "reversed", tickvals: labels.map((_, i) => i), ticktext: labels, tickfont: {size: 11.5, color: cssColour("ink")}})})};
}

function sharesPlot(rows) {
  const name = row => row.factor === "(interactions)" ? "interactions" : row.factor === "(within runs)" ? "within runs" : row.factor;
  const bars = (key, title, colour) => ({type: "bar", orientation: "h", name: title, y: rows.map(row => plain(shortenMiddle(name(row), 34)) + " "), x: rows.map(row => isNumber(row[key]) ? 100 * row[key] : null), marker: {color: colour},
    hovertemplate: "<b>%{x:.1f} %</b> %{y}<extra>" + title + "</extra>"});
  const data = [bars("share", "of every frame's latency", "#4269d0")];
  if (rows.some(row => isNumber(row.share_of_p99))) data.push(bars("share_of_p99", "of the runs' p99", "#efb118"));
  return {data, layout: layoutOf(90 + 34 * rows.length, {barmode: "group", showlegend: data.length > 1, margin: {l: 60, r: 16, t: 26, b: 42}, xaxis: axis("% of the variance (of the logarithm)", {range: [0, 100]}), yaxis: axis("", {autorange: "reversed", showgrid: false, tickfont: {color: cssColour("ink")}})})};
}

function effectsSection() {
  const shares = gridTable("shares"), effects = gridTable("effects"), together = gridTable("interactions");
  if (!shares.length && !effects.length) return;
  const statistics = [...new Set(effects.map(row => row.statistic))];
  let statistic = statistics[0];
  const place = element("div");
  const show = () => {
    const rows = effects.filter(row => row.statistic === statistic).sort((a, b) => Math.abs(b.difference_ms) - Math.abs(a.difference_ms)).slice(0, kMostEffects);
    const box = element("div", {class: "plot", role: "img", "aria-label": "Main effects"});
    place.replaceChildren(box);
    queueMicrotask(() => drawIn(box, () => effectPlot(rows)));
  };
  if (statistics.length) show();
  const number = (key, title, help, text = significant) => ({key, title, help, kind: "number", cell: row => text(row[key])});
  const code = (key, title) => ({key, title, kind: "code", cell: row => row[key]});
  part("effects", "What it depends on", "Above, whose settings the latency varies with: shares of its variance (Shapley shares of R²); what lies within runs comes from frame to frame. Below, what a change of one factor does, all others equal: the mean difference over all pairs of runs that differ in nothing else, with its 95 % interval.",
    shares.length ? [plotBox(() => sharesPlot(shares), "Shares of variance"), notesOf(grid.shares.notes)] : null,
    effects.length ? [element("div", {class: "controls", style: "margin-top:22px"}, "Effect on", segments(statistics.map(name => [name, name]), statistic, value => { statistic = value; show(); }, "Statistic"),
      element("span", {}, effects.filter(row => row.statistic === statistic).length > kMostEffects ? `the ${kMostEffects} largest` : "")), place,
      element("p", {class: "note"}, "Intervals come from the frames of these runs, in blocks. Without repetitions (repeat:) they say nothing of how runs differ by themselves."),
      element("details", {}, element("summary", {}, "All effects"), tableOf(effects, [code("tenant", "tenant"), code("factor", "factor"), code("whose", "whose"), code("level", "level"), code("reference", "instead of"), code("statistic", "of"),
        number("pairs", "pairs", "of runs", String), number("difference_ms", "difference ms", "", signed), number("low_ms", "from", "95 %"), number("high_ms", "to", "95 %"), number("change", "change", "", change)]))] : null,
    together.length ? element("details", {}, element("summary", {}, "Interactions: two changes together, beyond the sum of each"), tableOf(together, [code("tenant", "tenant"), code("factor_a", "factor"), code("level_a", "level"), code("factor_b", "and"), code("level_b", "level"), code("statistic", "of"),
      number("quadruples", "quadruples", "of runs", String), number("difference_ms", "difference ms", "", signed), number("low_ms", "from", "95 %"), number("high_ms", "to", "95 %")])) : null);
}
const kMostEffects = 24;

// A layer of one tenant in each run, next to the first one.
function layerBoxes(tenant, most) {
  const first = shownRuns.find(run => run.data.layers.some(row => row.tenant === tenant));
  const names = first ? first.data.layers.filter(row => row.tenant === tenant).slice(0, most).map(row => row.layer) : [];
  const shown = shownRuns.slice(0, kRunsOfLayers);
  const data = shown.map((run, at) => {
    const of = names.map(name => run.data.layers.find(row => row.tenant === tenant && row.layer === name)).filter(Boolean);
    const colour = runColours[at % runColours.length];
    return {type: "box", name: plain(shortenMiddle(cellTitle(run.label), 40)), x: of.map(row => plain(shortenMiddle(row.layer, 22))), lowerfence: of.map(row => row.min_ms), q1: of.map(row => row.p25_ms), median: of.map(row => row.p50_ms), q3: of.map(row => row.p75_ms), upperfence: of.map(row => row.max_ms), mean: of.map(row => row.mean_ms),
      marker: {color: colour}, line: {width: 1.2}, fillcolor: colour + "44", whiskerwidth: 0.5};
  });
  return {data, layout: layoutOf(360, {boxmode: "group", showlegend: shown.length > 1, margin: {l: 56, r: 12, t: 26, b: 90}, xaxis: axis("", {type: "category", showgrid: false, tickangle: names.length > 6 ? 40 : 0}), yaxis: axis("elapsed, ms", {rangemode: "tozero"})})};
}
const kRunsOfLayers = 6, kLayersOfBoxes = 12;

function variationSection() {
  const levels = gridTable("levels"), factors = [...new Set(levels.map(row => row.factor))];
  const tenants = tenantNames.filter(tenant => shownRuns.some(run => run.data.layers.some(row => row.tenant === tenant)));
  if (!factors.length && !tenants.length) return;
  const number = (key, title, help = "") => ({key, title, help, kind: "number", cell: row => significant(row[key])});
  const per = (key, title, help) => ({key, title, help, kind: "number", cell: row => change(row[key])});
  const content = [];
  if (factors.length) {
    let factor = factors[0];
    const place = element("div");
    const show = () => {
      const rows = levels.filter(row => row.factor === factor), box = element("div", {class: "plot", role: "img", "aria-label": "Latency by level"});
      place.replaceChildren(box, tableOf(rows, [{key: "level", title: "level", kind: "name", cell: row => row.level}, {key: "tenant", title: "tenant", cell: row => [tenantDot(row.tenant), row.tenant]}, {key: "frames", title: "frames", kind: "number"},
        number("mean_ms", "mean ms"), number("std_ms", "std ms"), number("p50_ms", "p50"), number("p99_ms", "p99", "from 100 frames on"), number("range_ms", "range", "greatest - least"), number("width_ms", "width", "p99 - p0"),
        per("mean_change", "mean changes", "against the first level"), per("width_change", "width changes", "against the first level")]));
      queueMicrotask(() => drawIn(box, () => levelBoxes(rows)));
    };
    show();
    content.push(element("div", {class: "controls"}, "By", segments(factors.map(name => [name, shorten(name, 28)]), factor, value => { factor = value; show(); }, "Factor")), place);
  }
  if (tenants.length) {
    let tenant = tenants[0];
    const place = element("div");
    const show = () => {
      const box = element("div", {class: "plot", role: "img", "aria-label": "Layers by run"});
      place.replaceChildren(box);
      queueMicrotask(() => drawIn(box, () => layerBoxes(tenant, kLayersOfBoxes)));
    };
    show();
    content.push(element("h3", {style: "margin-top:26px"}, "Stages and layers"), element("p", {class: "note"}, `The longest of the first run, and the same in ${shownRuns.length > kRunsOfLayers ? `the first ${kRunsOfLayers} runs` : "each run"}: box from quartile to quartile, whiskers to the least and the greatest.`),
      element("div", {class: "controls", style: "margin-top:10px"}, segments(tenants.map(name => [name, name]), tenant, value => { tenant = value; show(); }, "Tenant")), place,
      element("details", {}, element("summary", {}, "How layers go with the latency"), following(run => tableOf(run.data.layers, [{key: "tenant", title: "tenant", cell: row => [tenantDot(row.tenant), row.tenant]}, {key: "layer", title: "layer", kind: "code"}, {key: "depth", title: "depth", help: "1: a stage, 2: an operation of one", kind: "number"},
        number("mean_ms", "mean ms"), number("std_ms", "std ms"), number("p99_ms", "p99"), number("max_ms", "max"), number("wait_ms", "waited ms", "mean, before it could start"), number("correlation", "correlation", "of its time and the frame's latency")]))),
      notesOf(shownRuns[0].data.layerNotes));
  }
  part("variation", "Variation", "How latencies spread by the levels of each factor (models, scenes, weather, priorities, whatever varies), all runs of a level together; then the stages and layers inside.", content);
}
