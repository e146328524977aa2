// Swiping a row of a queue on a touch screen presses the button in the row's element with
// data-swipe="right" or data-swipe="left". Without this script the buttons stay.

const FAR = 90; // pixels
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
let drag = null;

function moved(event) {
  return { x: event.clientX - drag.x, y: event.clientY - drag.y };
}

function end(event, presses) {
  if (!drag) return;
  const { row } = drag;
  const by = moved(event);
  row.style.transform = "";
  drag = null;
  if (!presses || Math.abs(by.x) < FAR || Math.abs(by.x) < 2 * Math.abs(by.y)) return;
  row.querySelector(`[data-swipe=${by.x > 0 ? "right" : "left"}] button`)?.click();
}

document.addEventListener("pointerdown", (event) => {
  const row = event.target.closest?.("[data-swipes]");
  if (!row || event.pointerType !== "touch" || event.target.closest("button, input")) return;
  drag = { row, x: event.clientX, y: event.clientY };
});
document.addEventListener("pointermove", (event) => {
  if (!drag || still) return;
  const by = moved(event);
  if (Math.abs(by.x) > Math.abs(by.y)) drag.row.style.transform = `translateX(${by.x}px)`;
});
document.addEventListener("pointerup", (event) => end(event, true));
document.addEventListener("pointercancel", (event) => end(event, false));
