// Updates the desk's page of a pull. After each event the script reads the changing part of the
// page again; without events it does so every few seconds.
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
    /* Without a network, the next event or timer tries again. */
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
