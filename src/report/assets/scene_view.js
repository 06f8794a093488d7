// Points and boxes in space, drawn by hand with a depth buffer: no WebGL, so that it works wherever a canvas does.
// x forward, y left, z up. Dragging turns, shift and drag (or two fingers) moves, the wheel zooms.
class SceneView {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.home();
    this.scene = null;
    canvas.style.touchAction = "none";
    let last = null;
    canvas.addEventListener("pointerdown", event => { last = [event.clientX, event.clientY]; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointerup", () => { last = null; });
    canvas.addEventListener("pointermove", event => {
      if (!last) return;
      const dx = event.clientX - last[0], dy = event.clientY - last[1];
      last = [event.clientX, event.clientY];
      if (event.shiftKey || event.buttons === 2) this.move(dx, dy);
      else { this.yaw -= dx * 0.006; this.pitch = Math.max(0.03, Math.min(Math.PI / 2, this.pitch + dy * 0.006)); }
      this.draw();
    });
    canvas.addEventListener("contextmenu", event => event.preventDefault());
    canvas.addEventListener("wheel", event => { event.preventDefault(); this.distance = Math.max(4, Math.min(250, this.distance * Math.exp(event.deltaY * 0.0012))); this.draw(); }, {passive: false});
    canvas.addEventListener("dblclick", () => { this.home(); this.draw(); });
    canvas.addEventListener("keydown", event => {
      const step = {ArrowLeft: [0.08, 0, 1], ArrowRight: [-0.08, 0, 1], ArrowUp: [0, 0.06, 1], ArrowDown: [0, -0.06, 1], "+": [0, 0, 0.9], "-": [0, 0, 1.1]}[event.key];
      if (!step) return;
      event.preventDefault();
      this.yaw += step[0]; this.pitch = Math.max(0.03, Math.min(Math.PI / 2, this.pitch + step[1])); this.distance *= step[2];
      this.draw();
    });
    new ResizeObserver(() => this.draw()).observe(canvas);
    darkQuery.addEventListener("change", () => this.draw());
  }
  home() { this.yaw = 0; this.pitch = 0.55; this.distance = 60; this.centre = [12, 0, 0]; }
  above() { this.yaw = 0; this.pitch = Math.PI / 2; this.distance = 75; this.centre = [8, 0, 0]; this.draw(); }
  move(dx, dy) {
    const scale = this.distance / this.canvas.clientHeight, c = Math.cos(this.yaw), s = Math.sin(this.yaw);
    this.centre[0] += (c * dy - s * dx) * scale;  // the ground follows the pointer
    this.centre[1] += (s * dy + c * dx) * scale;
  }
  // points: {places, intensity}; boxes: [[corners, colour, width]]; colourOf: "height" or "intensity".
  show(points, boxes, colouring) { this.scene = {points, boxes, colouring}; this.draw(); }

  draw() {
    const {canvas, context} = this, ratio = Math.min(2, devicePixelRatio || 1);
    const width = Math.round(canvas.clientWidth * ratio), height = Math.round(canvas.clientHeight * ratio);
    if (!width || !height || !this.scene) return;
    if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
    const dark = darkQuery.matches, ground = dark ? [18, 19, 22] : [250, 249, 246];
    const image = context.createImageData(width, height), pixels = new Uint32Array(image.data.buffer);
    pixels.fill((255 << 24 | ground[2] << 16 | ground[1] << 8 | ground[0]) >>> 0);
    const depth = new Float32Array(width * height).fill(Infinity);
    // The eye stands behind the centre (towards -x at yaw 0) and looks at it.
    const cy = Math.cos(this.yaw), sy = Math.sin(this.yaw), cp = Math.cos(this.pitch), sp = Math.sin(this.pitch);
    const forward = [cy * cp, sy * cp, -sp], right = [sy, -cy, 0], up = [cy * sp, sy * sp, cp];
    const eye = this.centre.map((value, i) => value - forward[i] * this.distance);
    const focal = 1.25 * height;
    const project = (x, y, z) => {
      const dx = x - eye[0], dy = y - eye[1], dz = z - eye[2];
      const w = dx * forward[0] + dy * forward[1] + dz * forward[2];
      return [width / 2 + focal * (dx * right[0] + dy * right[1]) / w, height / 2 - focal * (dx * up[0] + dy * up[1] + dz * up[2]) / w, w];
    };
    const {places, intensity} = this.scene.points, size = Math.max(1, Math.round(1.4 * ratio));
    const table = colourTable(dark), byHeight = this.scene.colouring === "height";
    for (let i = 0; i < intensity.length; ++i) {
      const [x, y, w] = project(places[3 * i], places[3 * i + 1], places[3 * i + 2]);
      if (!(w > 0.5)) continue;
      const left = Math.round(x), top = Math.round(y), share = byHeight ? (places[3 * i + 2] + 2.5) / 5 : Math.sqrt(intensity[i] / 255);
      const colour = table[Math.max(0, Math.min(255, Math.round(255 * share)))];
      for (let v = top; v < top + size; ++v) {
        if (v < 0 || v >= height) continue;
        for (let u = left; u < left + size; ++u) {
          if (u < 0 || u >= width) continue;
          const at = v * width + u;
          if (w < depth[at]) { depth[at] = w; pixels[at] = colour; }
        }
      }
    }
    context.putImageData(image, 0, 0);
    context.lineCap = "round";
    const near = 0.5, line = (a, b) => {
      let [p, q] = [a, b];
      const wa = this.depthOf(a, eye, forward), wb = this.depthOf(b, eye, forward);
      if (wa < near && wb < near) return;
      if (wa < near) p = a.map((value, i) => value + (b[i] - value) * (near - wa) / (wb - wa));
      if (wb < near) q = b.map((value, i) => value + (a[i] - value) * (near - wb) / (wa - wb));
      const from = project(...p), to = project(...q);
      context.moveTo(from[0], from[1]);
      context.lineTo(to[0], to[1]);
    };
    // Rings of 10 m around the sensor, and where it looks.
    context.strokeStyle = dark ? "#3b3f47" : "#cfccc4";
    context.lineWidth = ratio;
    context.beginPath();
    for (let radius = 10; radius <= 50; radius += 10)
      for (let k = 0; k < 72; ++k) line(...[k, k + 1].map(step => [radius * Math.cos(step * Math.PI / 36), radius * Math.sin(step * Math.PI / 36), -1.8]));
    line([0, 0, -1.8], [4, 0, -1.8]);
    context.stroke();
    for (const {corners, colour, thick, text} of this.scene.boxes) {
      context.strokeStyle = colour;
      context.lineWidth = thick * ratio;
      context.beginPath();
      for (let k = 0; k < 4; ++k) {
        line(corners[k], corners[(k + 1) % 4]);
        line(corners[4 + k], corners[4 + (k + 1) % 4]);
        line(corners[k], corners[4 + k]);
      }
      line(corners[0], corners[5]);  // a cross on the face in front
      line(corners[1], corners[4]);
      context.stroke();
      const top = [0, 1, 2].map(axis => corners.slice(4).reduce((sum, corner) => sum + corner[axis] / 4, 0));
      if (!text || this.depthOf(top, eye, forward) < near || this.distance > 130) continue;
      const [x, y] = project(...top);
      context.font = `${11 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
      context.fillStyle = colour;
      context.fillText(text, x + 3 * ratio, y - 4 * ratio);
    }
    canvas.dataset.drawn = String(Number(canvas.dataset.drawn || 0) + 1);
  }
  depthOf(point, eye, forward) { return point.reduce((sum, value, i) => sum + (value - eye[i]) * forward[i], 0); }
}

// 256 colours from dark to bright on the page's ground, as the pixels of an ImageData have them.
const colourTables = new Map();
function colourTable(dark) {
  if (!colourTables.has(dark)) {
    const stops = dark ? [[48, 60, 120], [38, 130, 180], [60, 190, 140], [210, 220, 90], [255, 250, 220]] : [[40, 48, 110], [30, 110, 170], [30, 150, 110], [190, 150, 20], [200, 50, 30]];
    colourTables.set(dark, Uint32Array.from({length: 256}, (_, i) => {
      const at = i / 255 * (stops.length - 1), low = Math.min(stops.length - 2, Math.floor(at));
      const [r, g, b] = stops[low].map((value, k) => Math.round(value + (stops[low + 1][k] - value) * (at - low)));
      return (255 << 24 | b << 16 | g << 8 | r) >>> 0;
    }));
  }
  return colourTables.get(dark);
}
