// Shows the phone's page without a network: it stores the page and its files when they are loaded.
// The page itself stores marks and queues.
const CACHE = "pull-1";
const kept = request =>
  new URL(request.url).pathname.startsWith("/static/") ||
  request.mode === "navigate" ||
  request.destination === "image";
addEventListener("install", () => skipWaiting());
addEventListener("activate", event => event.waitUntil(clients.claim()));
addEventListener("fetch", event => {
  const { request } = event;
  if (request.method !== "GET" || !kept(request)) return;
  event.respondWith(answer(request));
});
async function answer(request) {
  const cache = await caches.open(CACHE);
  try {
    const fresh = await fetch(request);
    if (fresh.ok) await cache.put(request, fresh.clone());
    if (fresh.status === 410) await cache.delete(request, { ignoreSearch: true });
    return fresh;
  } catch (problem) {
    const old = await cache.match(request, { ignoreSearch: true, ignoreVary: true });
    if (old) return old;
    throw problem;
  }
}
