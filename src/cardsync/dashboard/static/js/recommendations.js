// Reports which suggestions a member has seen: at least half of the row was visible while this tab
// was active. Each revision is reported once, and a failed report is not repeated.

const token = document.querySelector("meta[name=csrf-token]")?.content;
const visible = new Set();
const told = new Set();
let timer = 0;

function tell() {
  timer = 0;
  if (document.visibilityState !== "visible" || !document.hasFocus()) return;
  const rows = [...visible].filter((row) => !told.has(row)).slice(0, 20);
  if (!rows.length) return;
  rows.forEach((row) => told.add(row));
  const observations = rows.map((row) => ({
    id: Number(row.dataset.shown),
    revision: row.dataset.revision,
  }));
  fetch("/api/recommendations/shown", {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRF-Token": token },
    body: JSON.stringify({ observations }),
  })
    // Reading the answer frees the connection.
    .then((answer) => answer.text())
    .catch(() => {});
}

function soon() {
  timer ||= setTimeout(tell, 500);
}

const watching = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      if (entry.intersectionRatio >= 0.5) visible.add(entry.target);
      else visible.delete(entry.target);
    }
    soon();
  },
  { threshold: 0.5 },
);
document.querySelectorAll("[data-shown]").forEach((row) => watching.observe(row));
document.addEventListener("visibilitychange", soon);
window.addEventListener("focus", soon);
