// Keeps what was loaded for days without a network, unpacks what a host sends as it is, and adds
// the two headers that isolate a page, so that a running cell can be interrupted. A new version
// waits until the pages of the old one are closed: each finds what it was made with.
const STORE = "live VERSION";
const PACKED = /\/live\/[^/]+\/pyodide\.asm\.(wasm|mjs)$/;
const TYPES = { wasm: "application/wasm", mjs: "text/javascript" };
const ISOLATED = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "same-origin",
};

addEventListener("activate", (event) => event.waitUntil(begin()));
addEventListener("fetch", (event) => {
  const own = new URL(event.request.url).origin === location.origin;
  if (own && event.request.method === "GET") event.respondWith(answer(event.request));
});

async function begin() {
  for (const name of await caches.keys())
    if (name.startsWith("live ") && name !== STORE) await caches.delete(name);
  await clients.claim();
}

// What lies under live/ never changes, its folder has the name of its sum. Pages do: the network
// comes first, and the store where there is none.
async function answer(request) {
  const url = new URL(request.url);
  url.search = url.hash = "";
  const store = await caches.open(STORE);
  const old = await store.match(url);
  if (old && url.pathname.includes("/live/")) return old;
  try {
    const got = isolated(await (PACKED.test(url.pathname) ? unpacked(url) : fetch(request)));
    if (got.status === 200) await store.put(url, got.clone()).catch(() => {}); // a full disk
    return got;
  } catch (error) {
    if (old) return old;
    throw error;
  }
}

async function unpacked(url) {
  const got = await fetch(`${url.href}.gz`);
  if (!got.ok) return got;
  const headers = { "Content-Type": TYPES[url.pathname.split(".").at(-1)] };
  return new Response(got.body.pipeThrough(new DecompressionStream("gzip")), { headers });
}

function isolated(got) {
  if (!got.body || got.redirected) return got;
  const headers = new Headers(got.headers);
  for (const [name, value] of Object.entries(ISOLATED)) headers.set(name, value);
  return new Response(got.body, { status: got.status, statusText: got.statusText, headers });
}
