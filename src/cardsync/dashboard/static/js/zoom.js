// Shows the picture of a row larger while the pointer or the focus is on it. The larger picture is
// loaded only then.
const REST_MS = 150;
const zoom = document.createElement("div");
zoom.className = "zoom";
zoom.hidden = true;
zoom.setAttribute("aria-hidden", "true");
let resting = 0;

function show(thumb) {
  const picture = new Image(146, 204);
  picture.className = "pic medium";
  // A row with a drawn stand-in has no picture; its larger picture is at the card's address.
  picture.src = thumb.src?.replace(/small$/, "medium") ?? `/img${thumb.closest("a").pathname}/medium`;
  zoom.replaceChildren(picture);
  if (!zoom.isConnected) document.body.append(zoom);
  zoom.hidden = false;
  const beside = (thumb.closest(".who") || thumb).getBoundingClientRect();
  const [width, height] = [zoom.offsetWidth + 8, zoom.offsetHeight + 8];
  zoom.style.left = `${Math.max(0, Math.min(beside.right + 8, innerWidth - width))}px`;
  zoom.style.top = `${Math.max(0, Math.min(beside.top, innerHeight - height))}px`;
}

function hide() {
  clearTimeout(resting);
  zoom.hidden = true;
}

function rest(thumb) {
  hide();
  if (thumb) resting = setTimeout(show, REST_MS, thumb);
}

const THUMB = '.pic:is(img[src$="/small"], a[href^="/cards/"] .stand-in)';
document.addEventListener("pointerover", event => {
  if (event.pointerType === "mouse") rest(event.target.closest?.(`[data-rows] ${THUMB}`));
});
document.addEventListener("focusin", event => {
  const link = event.target.closest?.("[data-rows] a:focus-visible");
  rest(link?.closest("tr, li").querySelector(THUMB));
});
for (const name of ["focusout", "scroll", "keydown"]) document.addEventListener(name, hide, true);
