// The desk's page of a pull follows its phones: an event says that something has changed, and the
// page's own part is read anew. Without events it asks every few seconds.
let waiting = false;
async function refresh() {
  if (waiting || document.hidden) return;
  waiting = true;
  try {
    const answer = await fetch(location.pathname, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("pull-live");
    const live = document.getElementById("pull-live");
    if (fresh && !live.contains(document.activeElement)) live.replaceWith(fresh);
  } catch {
    /* The network is away; the next event or turn asks again. */
  } finally {
    waiting = false;
  }
}

const address = document.getElementById("pull-live")?.dataset.changes;
let polling = 0;
if (address) {
  const events = new EventSource(address);
  events.addEventListener("changed", () => {
    clearInterval(polling);
    polling = 0;
    refresh();
  });
  events.addEventListener("ended", () => {
    events.close();
    refresh();
  });
  events.addEventListener("error", () => {
    polling ||= setInterval(refresh, 5000);
  });
}
