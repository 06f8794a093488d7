// The timeline of lanes: all runs below each other on one scale, time 0 being where each run began.
const kRuler = 26, kOverview = 40, kRunHead = 30, kLaneGap = 7, kTallest = 736;

// The lanes of a run in the order of the stages; those that did nothing during the run itself come after a fold. The range
// "run" is no work: the bar at the run's head shows it.
function laneGroups(run) {
  const {timeline} = run;
  const order = (run.facts["pipeline.stages"] || "").split(",");
  const lanes = timeline.lanes.map((lane, index) => {
    const rows = timeline.rows.map((row, id) => ({row, id})).filter(({row}) => row.lane === index && row.n > 0);
    const marks = timeline.marks.filter(mark => mark.lane === index);
    const during = rows.some(({row}) => {
      let i = upperBound(row.end, timeline.run[0]);
      while (i < row.n && row.start[i] < timeline.run[1] && timeline.names[row.name[i]] === "run") ++i;
      return i < row.n && row.start[i] < timeline.run[1];
    })
      || marks.some(mark => mark.time <= timeline.run[1]);
    const stage = lane.name.replace(/^stage /, "");
    return {name: stage, full: lane.name, process: lane.process, pid: lane.pid, rows, marks, during, rank: order.indexOf(order.includes(stage) ? stage : stage.replace(/ \d+$/, "")), index};
  }).filter(lane => lane.rows.length || lane.marks.length);
  const family = lane => lane.name.replace(/ \d+$/, "");
  lanes.sort((a, b) => a.rank - b.rank || (family(a) === family(b) ? a.name.localeCompare(b.name, "en", {numeric: true}) : 0) || a.index - b.index);
  const inside = lanes.filter(lane => lane.during);
  return inside.length ? {inside, outside: lanes.filter(lane => !lane.during)} : {inside: lanes, outside: []};
}

class TimelineView {
  constructor(box, tip) {
    this.box = box;
    this.tip = tip;
    this.base = box.querySelector("canvas.base");
    this.over = box.querySelector("canvas.hover");
    this.pen = new Pen(this.base.getContext("2d"));
    this.groups = runs.map(run => ({run, ...laneGroups(run), folded: false, showOutside: false}));
    this.longest = Math.max(...runs.map(run => run.timeline.run[1] - run.timeline.run[0]), 1);
    this.scroll = 0;
    this.sought = null;
    this.boxes = 0;
    this.keys = new Set();
    this.pointers = new Map();
    this.fit();
    this.listen();
    new ResizeObserver(() => this.resize()).observe(box);
    darkQuery.addEventListener("change", () => this.ask());
    this.resize();
  }

  // --- What is where -------------------------------------------------------------------------------------------------

  place() {
    this.items = [];
    let y = kLaneGap;
    for (const group of this.groups) {
      if (runs.length > 1 || group.outside.length) { this.items.push({kind: "run", group, y, height: kRunHead}); y += kRunHead; }
      if (group.folded) continue;
      const lanes = group.showOutside ? [...group.inside, ...group.outside] : group.inside;
      for (const lane of lanes) {
        const height = Math.max(1, lane.rows.length) * (kRowHeight + kRowGap);
        this.items.push({kind: "lane", group, lane, y, height});
        y += height + kLaneGap;
      }
      y += 6;
    }
    this.content = y;
  }

  resize() {
    this.place();
    const width = this.box.clientWidth;
    if (!width) return;
    this.width = width;
    this.left = width > 720 ? 132 : 92;
    this.top = kOverview + kRuler;
    this.height = this.top + Math.min(this.content, kTallest);
    const ratio = devicePixelRatio || 1;
    for (const canvas of [this.base, this.over]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(this.height * ratio);
      canvas.style.height = this.height + "px";
      canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    this.clampView();
    this.draw();
  }

  get nsPerPixel() { return (this.to - this.from) / (this.width - this.left); }
  timeAt(x) { return this.from + (x - this.left) * this.nsPerPixel; }
  xOf(time) { return this.left + (time - this.from) / this.nsPerPixel; }
  rowTop(item, line) { return this.top + item.y - this.scroll + line * (kRowHeight + kRowGap); }

  // All of every run, with lanes from outside the run where they are shown.
  extent() {
    let from = 0, to = this.longest;
    for (const {run, showOutside} of this.groups) {
      if (!showOutside) continue;
      from = Math.min(from, -run.timeline.run[0]);
      to = Math.max(to, run.timeline.duration - run.timeline.run[0]);
    }
    return [from, to];
  }
  fit() {
    const [from, to] = this.extent();
    const margin = (to - from) * 0.012;
    this.from = from - margin;
    this.to = to + margin;
    this.ask();
  }
  clampView() {
    const [from, to] = this.extent(), span = to - from, margin = span * 0.5;
    const width = Math.min(Math.max(this.to - this.from, 200), span * 2);
    this.from = Math.min(Math.max(this.from, from - margin), to + margin - width);
    this.to = this.from + width;
    this.scroll = Math.max(0, Math.min(this.scroll, this.content - (this.height - this.top)));
  }
  show(from, to) {
    this.from = from;
    this.to = to;
    this.clampView();
    this.ask();
  }
  zoom(factor, x = (this.left + this.width) / 2) {
    const time = this.timeAt(Math.max(x, this.left));
    this.show(time - (time - this.from) * factor, time + (this.to - time) * factor);
  }
  pan(pixels) { this.show(this.from + pixels * this.nsPerPixel, this.to + pixels * this.nsPerPixel); }

  // --- Drawing -------------------------------------------------------------------------------------------------------

  ask() {
    if (this.asked) return;
    this.asked = requestAnimationFrame(() => { this.asked = 0; this.draw(); });
  }

  draw() {
    if (!this.width) return;
    const context = this.pen.context, began = performance.now();
    context.clearRect(0, 0, this.width, this.height);
    context.textBaseline = "middle";
    this.boxes = 0;
    context.save();
    context.beginPath();
    context.rect(0, this.top, this.width, this.height - this.top);
    context.clip();
    this.drawGrid();
    for (const item of this.items) {
      const y = this.rowTop(item, 0);
      if (y > this.height || y + item.height < this.top) continue;
      if (item.kind === "run") this.drawRunHead(item, y); else this.drawLane(item, y);
    }
    context.restore();
    this.drawRuler();
    this.drawOverview();
    this.drawScrollMark();
    this.drawHover();
    // For tests: what is seen, and what drawing it costs.
    this.box.dataset.view = JSON.stringify({from: this.from, to: this.to, boxes: this.boxes, ms: performance.now() - began});
  }

  eachTick(visit) {
    const step = tickStep(this.nsPerPixel);
    for (let time = Math.ceil(this.from / step) * step; time <= this.to; time += step) visit(time, step);
  }
  drawGrid() {
    const context = this.pen.context;
    context.fillStyle = cssColour("line");
    this.eachTick(time => context.fillRect(Math.round(this.xOf(time)), this.top, 1, this.height));
  }
  drawRuler() {
    const context = this.pen.context;
    context.font = "11.5px " + cssColour("sans");
    context.fillStyle = cssColour("soft");
    this.eachTick((time, step) => {
      const x = Math.round(this.xOf(time));
      if (x < this.left) return;
      context.fillRect(x, this.top - 5, 1, 5);
      if (x + 60 < this.width) context.fillText(tickText(Math.abs(time) < step / 2 ? 0 : time, step), x + 5, this.top - kRuler / 2);
    });
    context.fillStyle = cssColour("line-strong");
    context.fillRect(0, this.top - 1, this.width, 1);
  }

  drawRunHead(item, y) {
    const context = this.pen.context, {run, folded} = item.group, colour = runColour(run);
    const [start, end] = [this.xOf(0), this.xOf(run.timeline.run[1] - run.timeline.run[0])];
    context.fillStyle = colour;
    context.globalAlpha = 0.9;
    context.fillRect(Math.max(this.left, start), y + kRunHead - 8, Math.max(0, Math.min(end, this.width) - Math.max(this.left, start)), 3);
    context.globalAlpha = 1;
    context.fillStyle = cssColour("ink");
    context.font = "600 12.5px " + cssColour("sans");
    const title = this.pen.fitted((folded ? "▸ " : "▾ ") + run.label, this.left - 14);
    context.fillText(title, 10, y + 13);
    context.font = "12px " + cssColour("sans");
    context.fillStyle = cssColour("soft");
    const words = [];
    if (isNumber(run.throughput.frames)) words.push(run.throughput.frames.toLocaleString("en") + " frames in " + duration(run.timeline.run[1] - run.timeline.run[0]));
    if (item.group.outside.length) words.push((item.group.showOutside ? "▾ hide" : "▸ show") + (this.width > 720 ? " what was done before and after" : " before, after"));
    context.fillText(this.pen.fitted(words.join("   ·   "), this.width - this.left - 12), Math.max(this.left, Math.min(start, this.width - 200)) + 1, y + 12);
  }

  drawLane(item, y) {
    const context = this.pen.context, {lane, group} = item;
    context.font = "12px " + cssColour("sans");
    context.fillStyle = cssColour("soft");
    context.fillText(this.pen.fitted(lane.name, this.left - 18), 10, y + kRowHeight / 2 + 0.5);
    context.save();
    context.beginPath();
    context.rect(this.left, this.top, this.width - this.left, this.height);
    context.clip();
    context.font = "11.5px " + cssColour("sans");
    const view = this.viewOf(group.run);
    lane.rows.forEach(({row}, line) => { this.boxes += drawRow(this.pen, row, group.run.timeline.names, view, this.rowTop(item, line), kRowHeight, {}); });
    this.drawMarks(item, y);
    context.restore();
  }
  viewOf(run) {
    return {from: this.from, to: this.to, left: this.left, nsPerPixel: this.nsPerPixel, offset: run.timeline.run[0], sought: this.sought};
  }
  drawMarks(item, y) {
    const context = this.pen.context, offset = item.group.run.timeline.run[0];
    context.fillStyle = "#e0392b";
    let before = -9;
    for (const mark of item.lane.marks) {
      const x = this.xOf(mark.time - offset);
      if (x < this.left - 4 || x > this.width + 4 || x - before < 1) continue;
      context.beginPath();
      context.moveTo(x, y + 6);
      context.lineTo(x - 4, y - 2);
      context.lineTo(x + 4, y - 2);
      context.fill();
      before = x;
      ++this.boxes;
    }
  }

  // The whole of every run, small, with a window where the view is.
  drawOverview() {
    const context = this.pen.context, [from, to] = this.extent(), width = this.width - this.left;
    const height = kOverview - 12;
    // Of each run as many lanes as can be told apart, the busiest.
    const most = Math.max(1, Math.floor(height / 3 / this.groups.length));
    const lines = this.groups.flatMap(({run, inside}) => {
      const all = inside.map(lane => lane.rows[0]).filter(Boolean);
      const kept = new Set([...all].sort((a, b) => b.row.busy[b.row.n] - a.row.busy[a.row.n]).slice(0, most));
      return all.filter(row => kept.has(row)).map(row => ({run, row}));
    });
    const each = height / Math.max(1, lines.length);
    context.fillStyle = cssColour("hover");
    context.fillRect(this.left, 0, width, kOverview - 6);
    lines.forEach(({run, row}, i) => drawRow(this.pen, row.row, run.timeline.names, {from, to, left: this.left, nsPerPixel: (to - from) / width, offset: run.timeline.run[0], sought: this.sought}, 3 + i * each, Math.max(1, each - (each > 3 ? 0.8 : 0)), {thin: true}));
    const x = time => this.left + (time - from) / (to - from) * width;
    const [begin, end] = [Math.max(this.left, x(this.from)), Math.min(this.width, x(this.to))];
    context.globalAlpha = 0.72;
    context.fillStyle = cssColour("card");
    context.fillRect(this.left, 0, begin - this.left, kOverview - 6);
    context.fillRect(end, 0, this.width - end, kOverview - 6);
    context.globalAlpha = 1;
    context.strokeStyle = cssColour("faint");
    context.strokeRect(begin + 0.5, 0.5, Math.max(2, end - begin - 1), kOverview - 7);
  }
  drawScrollMark() {
    const window = this.height - this.top;
    if (this.content <= window) return;
    const context = this.pen.context;
    context.fillStyle = cssColour("faint");
    context.globalAlpha = 0.5;
    context.fillRect(this.width - 5, this.top + this.scroll / this.content * window, 3, window * window / this.content);
    context.globalAlpha = 1;
  }

  // --- The box under the pointer, and the way of its frame -------------------------------------------------------------

  hit(x, y) {
    if (y < this.top || x < this.left) return null;
    for (const item of this.items) {
      if (item.kind !== "lane") continue;
      const line = Math.floor((y - this.rowTop(item, 0)) / (kRowHeight + kRowGap));
      if (line < 0 || line >= item.lane.rows.length) continue;
      const {row, id} = item.lane.rows[line], time = this.timeAt(x) + item.group.run.timeline.run[0];
      const reach = 3 * this.nsPerPixel;
      let best = null, distance = reach;
      const near = upperBound(row.start, time) - 1;
      for (const i of [near, near + 1]) {
        if (i < 0 || i >= row.n) continue;
        const away = Math.max(row.start[i] - time, time - row.end[i], 0);
        if (away <= distance) { best = i; distance = away - 1e-9; }
      }
      return best === null ? null : {run: item.group.run, rowId: id, row, index: best};
    }
    return null;
  }

  // Flows by the box at either end, made at the first use.
  flowsOf(run) {
    if (!run.flowIndex) {
      run.flowIndex = {out: new Map(), in: new Map()};
      const note = (map, row, index, flow) => { const key = row + ":" + index; if (map.has(key)) map.get(key).push(flow); else map.set(key, [flow]); };
      for (const flow of run.timeline.flows) {
        note(run.flowIndex.out, flow.fromRow, flow.fromIndex, flow);
        note(run.flowIndex.in, flow.toRow, flow.toIndex, flow);
      }
    }
    return run.flowIndex;
  }
  // The arrows that lead to and from a box, and on from there.
  chain({run, rowId, index}) {
    const flows = this.flowsOf(run), arrows = [];
    for (const [side, row, place] of [["out", "toRow", "toIndex"], ["in", "fromRow", "fromIndex"]]) {
      const open = [rowId + ":" + index], seen = new Set(open);
      while (open.length && arrows.length < 80) {
        for (const flow of flows[side].get(open.shift()) || []) {
          arrows.push(flow);
          const next = flow[row] + ":" + flow[place];
          if (!seen.has(next)) { seen.add(next); open.push(next); }
        }
      }
    }
    return arrows;
  }
  centreOf(run, rowId) {
    for (const item of this.items) {
      if (item.kind !== "lane" || item.group.run !== run) continue;
      const line = item.lane.rows.findIndex(({id}) => id === rowId);
      if (line >= 0) return this.rowTop(item, line) + kRowHeight / 2;
    }
    return null;
  }

  drawHover() {
    const context = this.over.getContext("2d");
    context.clearRect(0, 0, this.width, this.height);
    context.save();
    context.beginPath();
    context.rect(this.left, this.top, this.width - this.left, this.height - this.top);
    context.clip();
    const target = this.target, ink = cssColour("ink");
    if (target) {
      const offset = target.run.timeline.run[0];
      if (target.row.frame[target.index] >= 0) this.outlineFrame(context, target, offset);
      context.strokeStyle = ink;
      context.lineWidth = 2;
      this.outline(context, target.run, target.rowId, target.row, target.index, offset);
      context.lineWidth = 1.4;
      for (const flow of this.chain(target)) {
        const [y0, y1] = [this.centreOf(target.run, flow.fromRow), this.centreOf(target.run, flow.toRow)];
        if (y0 !== null && y1 !== null) arrow(context, this.xOf(flow.from - offset), y0, this.xOf(flow.to - offset), y1, ink);
      }
    }
    if (this.selection) {
      const [a, b] = this.selection;
      context.fillStyle = ink;
      context.globalAlpha = 0.1;
      context.fillRect(Math.min(a, b), this.top, Math.abs(b - a), this.height);
      context.globalAlpha = 1;
      context.font = "600 12px " + cssColour("sans");
      context.textBaseline = "middle";
      context.fillText(duration(Math.abs(b - a) * this.nsPerPixel), Math.min(a, b) + 6, this.top + 12);
    }
    context.restore();
  }
  outline(context, run, rowId, row, index, offset) {
    const y = this.centreOf(run, rowId);
    if (y === null) return;
    const x = Math.max(this.left - 4, this.xOf(row.start[index] - offset)), end = Math.min(this.width + 4, this.xOf(row.end[index] - offset));
    context.strokeRect(x - 0.5, y - kRowHeight / 2 - 0.5, Math.max(2, end - x), kRowHeight + 1);
  }
  // The other boxes of the same frame, as far as they can be seen.
  outlineFrame(context, target, offset) {
    const frame = target.row.frame[target.index];
    context.strokeStyle = cssColour("ink");
    context.lineWidth = 1;
    context.globalAlpha = 0.55;
    target.run.timeline.rows.forEach((row, id) => {
      let i = upperBound(row.end, this.from + offset);
      for (let looked = 0; i < row.n && row.start[i] < this.to + offset && looked < 4000; ++i, ++looked)
        if (row.frame[i] === frame && row.end[i] - row.start[i] > this.nsPerPixel) this.outline(context, target.run, id, row, i, offset);
    });
    context.globalAlpha = 1;
  }

  showTip(event) {
    const {run, rowId, row, index} = this.target, timeline = run.timeline;
    const frame = row.frame[index], facts = [];
    if (runs.length > 1) facts.push(["run", run.label]);
    facts.push(["lasts", duration(row.end[index] - row.start[index]) + (row.open.has(index) ? ", open at the end of the recording" : "")], ["starts", duration(row.start[index] - timeline.run[0])]);
    if (frame >= 0) {
      const at = upperBound(run.frames.frame, frame) - 1;
      const total = at >= 0 && run.frames.frame[at] === frame && run.frames.total_ms ? run.frames.total_ms[at] : NaN;
      facts.push(["frame", frame.toLocaleString("en") + (Number.isFinite(total) ? ", done in " + significant(total) + " ms" : "")]);
    }
    for (const [key, value] of timeline.argumentsOf(rowId, index)) {
      if (key.endsWith("_ns") && typeof value === "number") facts.push([key.slice(0, -3), duration(value)]);
      else facts.push([key, typeof value === "number" ? value.toLocaleString("en") : value]);
    }
    const several = row.several.get(index), name = timeline.names[row.name[index]];
    if (several) facts.push(["busy", duration(row.busy[index + 1] - row.busy[index])]);
    this.tip.replaceChildren(element("b", {}, several ? `${several.toLocaleString("en")} ranges, mostly ${name}` : name), element("dl", {}, facts.map(([key, value]) => [element("dt", {}, key), element("dd", {}, String(value))])));
    this.tip.hidden = false;
    const size = this.tip.getBoundingClientRect();
    const x = event.clientX + 16 + size.width > innerWidth ? event.clientX - size.width - 12 : event.clientX + 16;
    const y = Math.min(event.clientY + 18, innerHeight - size.height - 8);
    this.tip.style.left = Math.max(6, x) + "px";
    this.tip.style.top = y + "px";
  }
  hover(event) {
    const [x, y] = [event.offsetX, event.offsetY];
    const target = this.hit(x, y);
    const moved = !target !== !this.target || (target && (target.index !== this.target.index || target.row !== this.target.row));
    this.target = target;
    if (target) this.showTip(event); else this.tip.hidden = true;
    if (moved) this.drawHover();
    const head = this.headAt(y);
    this.base.style.cursor = target || head ? "pointer" : y < kOverview || x < this.left ? "default" : "grab";
  }
  leave() {
    this.tip.hidden = true;
    this.target = null;
    this.inside = false;
    this.drawHover();
  }
  headAt(y) {
    return y < this.top ? null : this.items.find(item => item.kind === "run" && y >= this.rowTop(item, 0) && y < this.rowTop(item, 0) + kRunHead);
  }

  // --- Mouse, fingers, keys ----------------------------------------------------------------------------------------------

  listen() {
    const canvas = this.base;
    let pageScrolled = -1e9;
    addEventListener("scroll", () => { pageScrolled = performance.now(); }, {passive: true});
    canvas.addEventListener("wheel", event => {
      // A page that is being scrolled goes on scrolling when it brings the timeline below the pointer.
      if (performance.now() - pageScrolled < 250) return;
      event.preventDefault();
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(event.deltaX || event.deltaY);
      else this.zoom(Math.exp(Math.max(-120, Math.min(120, event.deltaY * (event.deltaMode ? 30 : 1))) * 0.0022), event.offsetX);
    }, {passive: false});
    canvas.addEventListener("pointerdown", event => this.press(event));
    canvas.addEventListener("pointermove", event => this.move(event));
    for (const kind of ["pointerup", "pointercancel"]) canvas.addEventListener(kind, event => this.release(event));
    canvas.addEventListener("pointerenter", () => { this.inside = true; });
    canvas.addEventListener("pointerleave", () => { if (!this.pointers.size) this.leave(); });
    canvas.addEventListener("dblclick", () => {
      if (!this.target) return;
      const {run, row, index} = this.target, length = row.end[index] - row.start[index], start = row.start[index] - run.timeline.run[0];
      this.show(start - length * 0.15, start + length * 1.15);
    });
    addEventListener("keydown", event => {
      if (event.ctrlKey || event.metaKey || event.altKey || /INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) return;
      if (!this.inside && document.activeElement !== this.box) return;
      const key = {ArrowUp: "w", ArrowDown: "s", ArrowLeft: "a", ArrowRight: "d"}[event.key] || event.key.toLowerCase();
      if (key === "f" || key === "0") this.fit();
      if (!"wasd".includes(key) || key.length !== 1) return;
      event.preventDefault();
      this.keys.add(key);
      this.glide();
    });
    addEventListener("keyup", event => this.keys.delete({ArrowUp: "w", ArrowDown: "s", ArrowLeft: "a", ArrowRight: "d"}[event.key] || event.key.toLowerCase()));
    addEventListener("blur", () => this.keys.clear());
  }
  // Moves as long as keys are held, at a speed that does not depend on the screen's.
  glide() {
    if (this.gliding) return;
    let before = performance.now();
    const step = now => {
      const seconds = Math.min(0.05, (now - before) / 1000);
      before = now;
      if (this.keys.has("w")) this.zoom(Math.exp(-2.6 * seconds));
      if (this.keys.has("s")) this.zoom(Math.exp(2.6 * seconds));
      if (this.keys.has("a")) this.pan(-900 * seconds);
      if (this.keys.has("d")) this.pan(900 * seconds);
      this.gliding = this.keys.size ? requestAnimationFrame(step) : 0;
    };
    this.gliding = requestAnimationFrame(step);
  }

  press(event) {
    this.box.focus({preventScroll: true});
    this.base.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, {x: event.offsetX, y: event.offsetY});
    this.dragged = 0;
    if (event.offsetY < kOverview) this.mode = "overview", this.moveWindow(event.offsetX);
    else this.mode = event.shiftKey ? "select" : "pan";
    if (this.mode === "select") this.selection = [event.offsetX, event.offsetX];
  }
  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) { this.hover(event); return; }
    const now = {x: event.offsetX, y: event.offsetY};
    this.dragged += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
    if (this.pointers.size === 2) {
      const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];
      const [was, is] = [Math.abs(before.x - other.x), Math.abs(now.x - other.x)];
      if (was > 8 && is > 8) this.zoom(was / is, (now.x + other.x) / 2);
    } else if (this.mode === "overview") {
      this.moveWindow(now.x);
    } else if (this.mode === "select") {
      this.selection[1] = now.x;
      this.drawHover();
    } else if (this.dragged > 3) {
      this.tip.hidden = true;
      this.scroll -= event.pointerType === "touch" ? 0 : now.y - before.y;
      this.base.style.cursor = "grabbing";
      this.pan(before.x - now.x);
    }
    this.pointers.set(event.pointerId, now);
  }
  moveWindow(x) {
    const [from, to] = this.extent(), middle = from + (x - this.left) / (this.width - this.left) * (to - from), half = (this.to - this.from) / 2;
    this.show(middle - half, middle + half);
  }
  release(event) {
    this.pointers.delete(event.pointerId);
    if (this.selection) {
      const [a, b] = this.selection.map(x => this.timeAt(x)).sort((p, q) => p - q);
      if (Math.abs(this.selection[1] - this.selection[0]) > 4) this.show(a, b);
      this.selection = null;
      this.drawHover();
    } else if (this.dragged <= 3 && event.type === "pointerup") {
      const head = this.headAt(event.offsetY);
      if (head && event.offsetX < this.left) head.group.folded = !head.group.folded;
      else if (head && head.group.outside.length) {
        head.group.showOutside = !head.group.showOutside;
        this.fit();
      }
      if (head) this.resize();
    }
    if (event.type === "pointerup") this.hover(event);
  }

  // "#12" shows frame 12; other words strengthen the boxes that have them in their name.
  seek(text) {
    const number = /^\s*(?:#|frame\s*#?)\s*(\d+)\s*$/i.exec(text);
    const word = text.trim().toLowerCase();
    this.sought = number || !word ? null : name => name.toLowerCase().includes(word);
    if (number) this.showFrame(Number(number[1])); else this.ask();
  }
  showFrame(frame) {
    let from = Infinity, to = -Infinity;
    for (const {run} of this.groups) {
      for (const row of run.timeline.rows) {
        for (let i = 0; i < row.n; ++i) {
          if (row.frame[i] !== frame || row.start[i] > run.timeline.run[1]) continue;
          from = Math.min(from, row.start[i] - run.timeline.run[0]);
          to = Math.max(to, row.end[i] - run.timeline.run[0]);
        }
      }
      if (to > from) break;
    }
    if (to > from) this.show(from - (to - from) * 0.1, to + (to - from) * 0.1);
  }
}

function arrow(context, x0, y0, x1, y1, colour) {
  const bend = Math.max(14, Math.min(60, Math.abs(x1 - x0) / 2));
  context.strokeStyle = context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
  context.stroke();
  context.beginPath();
  context.moveTo(x1 + 1, y1);
  context.lineTo(x1 - 6, y1 - 3.5);
  context.lineTo(x1 - 6, y1 + 3.5);
  context.fill();
}

function timelineSection() {
  if (!runs.some(run => run.timeline.ranges > 0)) return null;
  const box = element("div", {class: "timeline", tabindex: "0", role: "application", "aria-label": "Timeline: w and s zoom, a and d move, f shows all"},
    element("canvas", {class: "base"}), element("canvas", {class: "hover"}));
  const tip = element("div", {class: "tip", role: "tooltip"});
  tip.hidden = true;
  document.body.append(tip);
  let view = null;
  const button = (text, label, act) => element("button", {type: "button", "aria-label": label, title: label, onclick: act}, text);
  const search = element("input", {type: "search", placeholder: "Name, or #frame", "aria-label": "Find a range or a frame", oninput: event => view.seek(event.target.value)});
  const names = new Set(runs.flatMap(run => run.timeline.names));
  const known = stageNames.filter(stage => names.has(stage)).concat(names.has("back-pressure") ? ["back-pressure"] : []);
  const notes = runs.flatMap(run => run.timeline.notes.map(note => runs.length > 1 ? `${run.label}: ${note}` : note));
  part("timeline", "Timeline", "Every lane is a thread, every box a range; boxes too narrow to see are drawn together, darker where they are denser." + (names.has("back-pressure") ? " Back-pressure is a stage that waits for room in the next queue." : "") + (runs.length > 1 ? " All runs stand on one scale and begin at 0." : ""),
    element("div", {class: "controls"}, search, button("Fit", "Show all (f)", () => view.fit()), button("+", "Zoom in (w)", () => view.zoom(0.6)), button("−", "Zoom out (s)", () => view.zoom(1 / 0.6)),
      element("span", {class: "spring"}), element("div", {class: "keys"}, known.map(name => element("span", {}, element("i", {style: `background:${colourOf(name)};opacity:${strengthOf(name)}`}), name)))),
    box,
    element("p", {class: "hint", style: "margin-top:10px"}, "Wheel or ", element("kbd", {}, "w"), " ", element("kbd", {}, "s"), " zoom, drag or ", element("kbd", {}, "a"), " ", element("kbd", {}, "d"),
      " move, ", element("kbd", {}, "shift"), " drag zooms into a stretch, double click into a box, ", element("kbd", {}, "f"), " shows all. Hover a box to follow its frame through the lanes."),
    ...notesOf(notes));
  view = new TimelineView(box, tip);
  return view;
}
