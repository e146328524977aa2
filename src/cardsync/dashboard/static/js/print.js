// The button of a page for paper that opens the browser's own print.
document.addEventListener("click", event => {
  if (event.target.closest?.("[data-action=print]")) print();
});
