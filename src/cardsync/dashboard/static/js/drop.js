// Sends a file when it is dropped on the page or chosen, and shows the progress. The server's
// answer is the same page as without scripts: the page of the file, or the reason of a refusal.
const form = document.querySelector("form[data-drop]");
const dragsFile = event => event.dataTransfer?.types.includes("Files");

function send() {
  const [bar, said] = form.querySelectorAll("[data-sent] progress, [data-sent] p");
  const request = new XMLHttpRequest();
  request.open("POST", form.action);
  request.responseType = "document";
  request.upload.addEventListener("progress", ({ loaded, total }) => {
    bar.value = loaded / total;
    said.textContent = loaded < total ? `${Math.round((100 * loaded) / total)}% sent` : "Sent";
  });
  request.addEventListener("load", () => {
    if (request.status < 400) return location.assign(request.responseURL);
    refuse(request.response?.querySelector(".notice.bad p, [data-refusal]")?.textContent);
  });
  request.addEventListener("error", () => refuse());
  form.setAttribute("aria-busy", "true");
  show(true);
  request.send(new FormData(form));
}

function show(sending) {
  form.querySelector("[data-sent]").hidden = !sending;
  form.querySelector("button").disabled = sending;
}

function refuse(why = "The connection broke. Send the file again.") {
  form.removeAttribute("aria-busy");
  show(false);
  const words = document.createElement("p");
  words.textContent = why;
  const line = document.createElement("div");
  line.className = "notice bad";
  line.setAttribute("role", "alert");
  line.append(words);
  document.getElementById("notices").replaceChildren(line);
  line.scrollIntoView({ block: "nearest" });
  form.querySelector("input[type=file]").value = "";
}

if (form) {
  const field = form.querySelector("input[type=file]");
  const take = () => field.files.length && !form.getAttribute("aria-busy") && send();
  field.addEventListener("change", take);
  form.addEventListener("submit", event => {
    event.preventDefault();
    take();
  });
  document.addEventListener("dragover", event => {
    if (!dragsFile(event)) return;
    event.preventDefault();
    if (form.popover) form.togglePopover(true);
    form.classList.add("over");
  });
  document.addEventListener("dragleave", event => {
    if (!event.relatedTarget) form.classList.remove("over");
  });
  document.addEventListener("drop", event => {
    if (!dragsFile(event)) return;
    event.preventDefault();
    form.classList.remove("over");
    field.files = event.dataTransfer.files;
    take();
  });
}
