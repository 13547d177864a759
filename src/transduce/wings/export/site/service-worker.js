/**
 * Keeps the page on the device. Each version has a cache, named by the hash of its files; files that did not change are
 * copied from the cache of the version before. A browser refuses a file whose hash is another one.
 */

const FILES = {/* FILES */};
const PREFIX = `transduce ${self.registration.scope} `; // several exports may share a host
const CACHE = PREFIX + "/* VERSION */";

const keyOf = (name) => new URL(`${name}?${FILES[name]}`, self.registration.scope).href;

async function install() {
  const cache = await caches.open(CACHE);
  for (const name of Object.keys(FILES)) {
    const url = new URL(name, self.registration.scope);
    const known = await caches.match(keyOf(name));
    const answer = known ?? (await fetch(url, { integrity: FILES[name], cache: "no-cache" }));
    if (!answer.ok) throw new Error(`${url}: status ${answer.status}`);
    await cache.put(keyOf(name), answer);
  }
}

async function removeOthers() {
  const names = await caches.keys();
  await Promise.all(names.filter((name) => name.startsWith(PREFIX) && name !== CACHE).map((name) => caches.delete(name)));
  await self.clients.claim();
}

async function answer(request) {
  const url = new URL(request.url);
  const path = url.href.slice(self.registration.scope.length).split(/[?#]/)[0] || "index.html";
  const kept = FILES[path] && (await (await caches.open(CACHE)).match(keyOf(path)));
  return kept ?? fetch(request);
}

self.addEventListener("install", (event) => event.waitUntil(install()));
self.addEventListener("activate", (event) => event.waitUntil(removeOthers()));
self.addEventListener("message", (event) => event.data === "use" && self.skipWaiting());
self.addEventListener("fetch", (event) => {
  if (event.request.method === "GET" && event.request.url.startsWith(self.registration.scope)) event.respondWith(answer(event.request));
});
