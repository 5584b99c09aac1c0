// Matrices in colour, and the softmax of their rows.
const CIVIDIS = "00224e0031702a3f6d434e6c575d6d6a6c717d7c78918b78a59c74bbad6dd1bf61e9d34efee838";
const STOPS = CIVIDIS.match(/../g).map((two) => parseInt(two, 16));
const LUT = new Uint32Array(256); // 0xAABBGGRR, as ImageData keeps it
for (let i = 0; i < 256; i++) {
  const k = Math.min(11, Math.floor((i / 255) * 12));
  const [from, to] = [STOPS.slice(3 * k), STOPS.slice(3 * k + 3)];
  const [r, g, b] = [0, 1, 2].map((c) => Math.round(from[c] + (to[c] - from[c]) * (i / 21.25 - k)));
  LUT[i] = (255 << 24) | (b << 16) | (g << 8) | r;
}

/** A matrix in colour, a pixel a cell; where pixels are too few, the largest of each block. */
export function paint(canvas, { data, rows, columns, low, high }, most = [512, 512]) {
  const block = [Math.ceil(rows / most[0]), Math.ceil(columns / most[1])];
  const [height, width] = [Math.ceil(rows / block[0]), Math.ceil(columns / block[1])];
  const few = height < rows || width < columns;
  const values = few ? largest(data, rows, columns, block, height, width) : data;
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const scale = 255 / (high - low || 1);
  for (let i = 0; i < pixels.length; i++) {
    const k = (values[i] - low) * scale;
    pixels[i] = k >= 0 ? LUT[k > 255 ? 255 : k | 0] : values[i] === -Infinity ? 0 : LUT[0];
  }
  context.putImageData(image, 0, 0);
}

function largest(data, rows, columns, block, height, width) {
  const out = new Float32Array(height * width).fill(-Infinity);
  for (let i = 0; i < rows; i++) {
    const start = Math.floor(i / block[0]) * width;
    for (let j = 0; j < columns; j++) {
      const k = start + Math.floor(j / block[1]);
      if (data[i * columns + j] > out[k]) out[k] = data[i * columns + j];
    }
  }
  return out;
}

/** The smallest and largest finite number; 0 belongs to it. */
export function limits(data) {
  let [low, high] = [0, 0];
  for (let i = 0; i < data.length; i++) {
    if (data[i] > high) high = data[i];
    else if (data[i] < low && data[i] !== -Infinity) low = data[i];
  }
  return { low, high };
}

/** The softmax of `n` numbers from `start`, written to `out`; a row of −∞ becomes zeros. */
export function softmax(x, start, n, out, temperature = 1) {
  let largest = -Infinity;
  for (let i = start; i < start + n; i++) if (x[i] > largest) largest = x[i];
  if (largest === -Infinity) return out.fill(0, start, start + n);
  let total = 0;
  for (let i = start; i < start + n; i++) {
    total += out[i] = Math.exp((x[i] - largest) / temperature);
  }
  for (let i = start; i < start + n; i++) out[i] /= total;
}
