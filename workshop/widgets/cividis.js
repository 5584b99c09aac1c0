// A scale from blue to yellow, for the eyes of all.
const CIVIDIS = "00224e0031702a3f6d434e6c575d6d6a6c717d7c78918b78a59c74bbad6dd1bf61e9d34efee838";
const STOPS = CIVIDIS.match(/../g).map((two) => parseInt(two, 16));
const LUT = new Uint32Array(256); // 0xAABBGGRR, as ImageData keeps it
for (let i = 0; i < 256; i++) {
  const k = Math.min(11, Math.floor((i / 255) * 12));
  const [from, to] = [STOPS.slice(3 * k), STOPS.slice(3 * k + 3)];
  const [r, g, b] = [0, 1, 2].map((c) => Math.round(from[c] + (to[c] - from[c]) * (i / 21.25 - k)));
  LUT[i] = (255 << 24) | (b << 16) | (g << 8) | r;
}

/** The colours of a grid: blue for the lowest number, yellow for the highest. */
export const cividis = ({ low, high }) => {
  const scale = 255 / (high - low || 1);
  const pixel = (x) => LUT[Math.max(0, Math.min(255, (x - low) * scale)) | 0];
  return { pixel, inkOn: (x) => (x >= low + 0.467 * (high - low) ? "black" : "white") };
};
