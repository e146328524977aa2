// Rules can be dragged, or moved with Alt and the arrow keys. The form sends the new order.
const form = document.getElementById("order");
const rowOf = element => element?.closest?.("[data-order] > tr");

function send(row) {
  const ids = [...row.parentElement.children].map(each => each.dataset.rule).join(",");
  if (ids === form.elements.shown.value) return;
  form.elements.ids.value = ids;
  form.submit();
}

function ready() {
  for (const row of document.querySelectorAll("[data-order] > tr")) row.draggable = true;
}
if (form) {
  let dragged = null,
    home = null;
  ready();
  document.addEventListener("htmx:after:swap", ready);
  document.addEventListener("dragstart", event => {
    dragged = rowOf(event.target);
    home = dragged?.nextElementSibling;
  });
  document.addEventListener("dragover", event => {
    const over = rowOf(event.target);
    if (!dragged || !over) return;
    event.preventDefault();
    const box = over.getBoundingClientRect();
    if (over !== dragged)
      over[event.clientY < box.top + box.height / 2 ? "before" : "after"](dragged);
  });
  document.addEventListener("drop", event => {
    if (dragged) {
      event.preventDefault();
      send(dragged);
    }
    dragged = null;
  });
  // A row that is dropped outside the table returns to its earlier place.
  document.addEventListener("dragend", () => {
    if (dragged) dragged.parentElement.insertBefore(dragged, home);
    dragged = null;
  });
  document.addEventListener("keydown", event => {
    const row = event.altKey && rowOf(event.target);
    if (!row) return;
    const other =
      event.key === "ArrowUp"
        ? row.previousElementSibling
        : event.key === "ArrowDown"
          ? row.nextElementSibling
          : null;
    if (!other) return;
    event.preventDefault();
    other[event.key === "ArrowUp" ? "before" : "after"](row);
    send(row);
  });
}
