// What a notebook saves of a program: its text and styles deflated, and how the browser imports
// them, once for all widgets of a page.
const packed = "PROGRAM";
const programs = (globalThis.stepByStep ??= {});
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const signs = `0123456789${letters}${letters.toLowerCase()}!#$%&()*+-;<=>?@^_\`{|}~`;
/** Of each five signs of Python's base 85 four bytes. */
function unpacked() {
  const bytes = new Uint8Array(4 * Math.ceil(packed.length / 5));
  for (let i = 0, at = 0; i < packed.length; i += 5) {
    let n = 0;
    for (let k = i; k < i + 5; k++)
      n = 85 * n + (k < packed.length ? signs.indexOf(packed[k]) : 84);
    for (const shift of [24, 16, 8, 0]) bytes[at++] = n >>> shift;
  }
  return bytes.subarray(0, Math.floor((4 * packed.length) / 5));
}
async function load() {
  const inflate = new Blob([unpacked()]).stream().pipeThrough(new DecompressionStream("deflate"));
  const script = new Response(inflate, { headers: { "Content-Type": "text/javascript" } });
  const address = URL.createObjectURL(await script.blob());
  const program = await import(address);
  URL.revokeObjectURL(address);
  const style = document.createElement("style");
  style.textContent = program.styles;
  document.head.append(style);
  return program.default;
}
export default () => (programs[packed] ??= load());
