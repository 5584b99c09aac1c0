// The tints of things: thinly laid over the page's ground, light or dark.
import { h } from "./shared.js";

const THINGS = ["x", "q", "k", "v", "scores", "weights", "context", "ink", "paper", "line", "soft"];
const STRONGEST = 0.72; // how much of its colour the largest number gets; as in colours.py

/** "rgb(1, 2, 3)" or "color(srgb 0.1 0.2 0.3)" as three numbers to 255. */
function channels(text) {
  const numbers = Array.from(text.match(/[\d.]+/g), Number).slice(0, 3);
  return text.startsWith("color(") ? numbers.map((x) => 255 * x) : numbers;
}
export const css = (rgb) => `rgb(${rgb.map(Math.round).join()})`;
/** How bright a colour is to the eye, 0 to 1. */
const luminance = (rgb) =>
  rgb
    .map((c) => (c / 255 <= 0.04 ? c / 3294 : ((c / 255 + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);

/** How much colour a number asks for; a score below 0 fits less than 0. As in colours.py. */
const sizeOf = (name, x) => (name === "scores" ? Math.max(0, x) : Math.abs(x)) || 0;

/** The page's colours, as they are mixed for light and dark, and 65 tints of each. */
export class Palette {
  constructor(element) {
    const swatch = element.appendChild(h("i", { hidden: true }));
    for (const name of THINGS) {
      swatch.style.color = `var(--${name})`;
      this[name] = channels(getComputedStyle(swatch).color);
    }
    swatch.remove();
    [this.tints, this.all] = [{}, {}];
  }
  /** The ground of a cell and the ink on it, for a share of the largest number. */
  tint(name, share) {
    const step = Math.round(64 * Math.min(1, sizeOf(name, share)));
    return ((this.tints[name] ??= [])[step] ??= this.mix(name, (STRONGEST * step) / 64));
  }
  /** The same grounds as pixels: that of a number in a matrix with this largest one. */
  pixels(name, largest) {
    const pixel = (_, k) => this.tint(name, k / 64).pixel;
    const all = (this.all[name] ??= Uint32Array.from({ length: 65 }, pixel));
    return (x) => all[Math.min(64, (64 * sizeOf(name, x)) / (largest || 1) + 0.5) | 0];
  }
  mix(name, part) {
    const ground = this[name].map((c, i) => part * c + (1 - part) * this.paper[i]);
    const [r, g, b] = ground.map(Math.round);
    const ink = luminance(ground) > 0.179 ? "#000000" : "#ffffff"; // 4.5:1 at least, on any ground
    return { css: css(ground), ink, pixel: (255 << 24) | (b << 16) | (g << 8) | r };
  }
}

/** The colours of a grid that shows a thing: of none of it at 0, of most at the largest number. */
export const tinted = (palette, name, { low, high }) => {
  const largest = Math.max(-low, high) || 1;
  const inkOn = (x) => palette.tint(name, x / largest).ink;
  return { pixel: palette.pixels(name, largest), inkOn, line: css(palette.line) };
};
export const tints = (name) => (grid) => tinted(new Palette(grid.element), name, grid);
