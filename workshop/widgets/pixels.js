// Matrices in colour, and the softmax of their rows.
/** A matrix in colour, a pixel a cell; where pixels are too few, the largest of each block. */
export function paint(canvas, { data, rows, columns, pixel }, most = [512, 512]) {
  const block = [Math.ceil(rows / most[0]), Math.ceil(columns / most[1])];
  const [height, width] = [Math.ceil(rows / block[0]), Math.ceil(columns / block[1])];
  const few = height < rows || width < columns;
  const values = few ? largest(data, rows, columns, block, height, width) : data;
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const image = context.createImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < pixels.length; i++)
    pixels[i] = values[i] === -Infinity ? 0 : pixel(values[i]);
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

/** Shares of one whole, the softmax of a row, written to `out`; a row of −∞ becomes zeros. */
export function shares(row, out, temperature = 1) {
  let [largest, sum] = [-Infinity, 0];
  for (let j = 0; j < row.length; j++) largest = Math.max(largest, row[j]); // NaN stays NaN
  if (largest === -Infinity) return out.fill(0);
  for (let j = 0; j < row.length; j++) sum += out[j] = Math.exp((row[j] - largest) / temperature);
  for (let j = 0; j < row.length; j++) out[j] /= sum;
}
