// Draws rows of boxes onto a canvas. Cost follows the pixels, not the ranges: what is narrower than a pixel is drawn as one
// column whose strength is the share of that time that is busy, and bisection jumps to the next pixel. Boxes that stand for
// several ranges are paler.
const kRowHeight = 20, kRowGap = 1;

// Calls box(x, width, index) for each range wide enough to see and smear(x, colour, share) for each pixel of narrow ones.
// Pixels are counted from time 0, so that smeared columns do not shimmer when the view moves.
function walkRow(row, from, to, nsPerPixel, box, smear) {
  let i = upperBound(row.end, from);
  while (i < row.n && row.start[i] < to) {
    if (row.end[i] - row.start[i] >= nsPerPixel) {
      box(i);
      ++i;
      continue;
    }
    const pixel = Math.floor(row.start[i] / nsPerPixel);
    const pixelEnd = (pixel + 1) * nsPerPixel;
    let next = i + 1, step = 1;
    while (next < row.n && row.start[next] < pixelEnd) { next += step; step *= 2; }
    next = upperBound(row.start, pixelEnd - 1e-6, i + 1, Math.min(next, row.n));
    // Only the last one of a pixel can reach past it; if it is wide it is a box of its own.
    const wide = next - 1 > i && row.end[next - 1] - row.start[next - 1] >= nsPerPixel;
    const last = wide ? next - 1 : next;
    smear(pixel * nsPerPixel, i, last, Math.min(1, (row.busy[last] - row.busy[i]) / nsPerPixel));
    i = last;
  }
}

// Of a few ranges spread over [first, last) the longest: it gives the column its colour.
function speaker(row, first, last) {
  const step = Math.max(1, Math.floor((last - first) / 6));
  let best = first;
  for (let i = first; i < last; i += step) if (row.end[i] - row.start[i] > row.end[best] - row.start[best]) best = i;
  return best;
}

class Pen {
  constructor(context) {
    this.context = context;
    this.widths = new Map();
  }
  // Width of a text, measured once by font.
  width(text) {
    const key = this.context.font + "|" + text;
    let width = this.widths.get(key);
    if (width === undefined) this.widths.set(key, width = this.context.measureText(text).width);
    return width;
  }
  // The text cut to fit; empty when hardly anything would be left.
  fitted(text, most) {
    if (this.width(text) <= most) return text;
    const letters = Math.floor(text.length * most / this.width(text)) - 1;
    return letters >= 2 ? text.slice(0, letters) + "…" : "";
  }
}

// One row of a run. time: run-relative nanoseconds of the view; returns the number of shapes drawn.
function drawRow(pen, row, names, view, y, height, look) {
  const context = pen.context;
  const {from, to, left, nsPerPixel, offset, sought} = view;
  const x = ns => left + (ns - offset - from) / nsPerPixel;
  const right = x(to + offset);
  let shapes = 0;
  walkRow(row, from + offset, to + offset, nsPerPixel, i => {
    const begin = Math.max(x(row.start[i]), left - 2), end = Math.min(x(row.end[i]), right + 2);
    const several = row.several.get(i), share = several ? (row.busy[i + 1] - row.busy[i]) / (row.end[i] - row.start[i]) : 1;
    const name = names[row.name[i]], colour = colourOf(name), width = Math.max(1, end - begin - (look.thin ? 0 : 0.6));
    context.globalAlpha = sought && !sought(name) ? 0.14 : strengthOf(name) * (several ? 0.3 + 0.4 * share : 1);
    context.fillStyle = colour;
    if (width > 8 && !look.thin) {
      context.beginPath();
      context.roundRect(begin, y, width, height, 3);
      context.fill();
    } else {
      context.fillRect(begin, y, width, height);
    }
    ++shapes;
    if (look.thin || width < 26) return;
    const faint = several || strengthOf(name) < 1;
    context.fillStyle = faint ? cssColour("soft") : inkOn(colour);
    if (faint && context.globalAlpha > 0.2) context.globalAlpha = 1;
    const room = width - 12;
    const label = several ? several.toLocaleString("en") + " ranges" : name, text = pen.fitted(label, room);
    if (!text || (text !== label && text.length < 6)) return;
    context.fillText(text, begin + 6, y + height / 2 + 0.5);
    const time = duration(row.end[i] - row.start[i]), used = pen.width(text) + 10;
    if (text === label && used + pen.width(time) <= room) {
      context.globalAlpha *= 0.68;
      context.fillText(time, begin + 6 + used - 3, y + height / 2 + 0.5);
    }
  }, (start, first, last, share) => {
    const name = names[row.name[speaker(row, first, last)]];
    context.globalAlpha = sought && !sought(name) ? 0.1 : (0.45 + 0.55 * share) * strengthOf(name);
    context.fillStyle = colourOf(name);
    context.fillRect(Math.max(left, x(start)), y, 1, height);
    ++shapes;
  });
  context.globalAlpha = 1;
  return shapes;
}

// Ticks at 1, 2 or 5 times a power of ten, about a hundred pixels apart.
function tickStep(nsPerPixel) {
  const rough = 100 * nsPerPixel, power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 5, 10].find(step => step * power >= rough) || 10);
}
function tickText(ns, step) {
  if (ns === 0) return "0 s";
  const [unit, name] = step >= 1e8 ? [1e9, "s"] : step >= 1e5 ? [1e6, "ms"] : step >= 100 ? [1e3, "µs"] : [1, "ns"];
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
  return (ns / unit).toLocaleString("en", {minimumFractionDigits: decimals, maximumFractionDigits: decimals}) + " " + name;
}
