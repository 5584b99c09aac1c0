// Keeps what was loaded for days without a network, and adds the headers that isolate a page, so
// that a running cell can be interrupted. A new version waits until the pages of the old one are
// closed: each finds what it was made with.
const STORE = "live VERSION";
const ISOLATED = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
  "cross-origin-resource-policy": "same-origin",
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
  const url = request.url.split(/[?#]/)[0];
  const store = await caches.open(STORE);
  const old = await store.match(url);
  if (old && url.includes("/live/")) return old;
  const got = await fetch(request).then(isolated, () => null);
  if (got?.status === 200) await store.put(url, got.clone()).catch(() => {}); // a full disk
  return got ?? old ?? Response.error();
}

function isolated(got) {
  const { body, redirected, status, statusText } = got;
  if (!body || redirected) return got;
  const headers = { ...Object.fromEntries(got.headers), ...ISOLATED };
  return new Response(body, { status, statusText, headers });
}
