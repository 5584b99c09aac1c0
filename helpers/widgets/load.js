// What a notebook saves of a program: its text deflated, and how the browser imports it, once for
// all widgets of a page.
const packed = "PROGRAM";
const programs = (globalThis.stepByStep ??= {});
async function load() {
  const bytes = Uint8Array.from(atob(packed), (sign) => sign.charCodeAt(0));
  const inflate = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const script = new Response(inflate, { headers: { "Content-Type": "text/javascript" } });
  const address = URL.createObjectURL(await script.blob());
  const program = await import(address);
  URL.revokeObjectURL(address);
  return program.default;
}
export default () => (programs[packed] ??= load());
