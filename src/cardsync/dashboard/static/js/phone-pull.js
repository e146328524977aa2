// A pull on a phone. Marks are added to an outbox and sent when there is a network, if needed
// several times; the server counts each mark once by its id. Without this script the page's forms
// send marks.
const token = document.body.dataset.token;
const base = `/p/${token}`;
const key = name => `pull-${name}-${token}`;
const read = (name, other) => {
  try {
    return JSON.parse(localStorage.getItem(name)) ?? other;
  } catch {
    return other;
  }
};
const write = (name, value) => localStorage.setItem(name, JSON.stringify(value));
const newId = () =>
  [...crypto.getRandomValues(new Uint8Array(16))]
    .map(byte => byte.toString(16).padStart(2, "0"))
    .join("");
const parameters = new URLSearchParams(location.search);

// A form may have opened the page before this script was loaded. The page then has the device id
// under which the server claimed its card.
const device = document.body.dataset.device || read("pull-device", null) || newId();
write("pull-device", device);
if (parameters.get("person")) write("pull-person", parameters.get("person"));
const person = () => read("pull-person", "");
let queue = read(key("queue"), null);
let outbox = read(key("outbox"), []);
// Marks that the server refused, with their reasons. They do not block other marks, and the page
// shows them.
let refused = read(key("refused"), []);
// The page's texts for each kind of mark.
const DONE = { pulled: "Pulled", defer: "Deferred", missing: "Missing", undo: "Undone" };
const STATES = {
  waiting: "Waiting",
  deferred: "StateDeferred",
  missing: "StateMissing",
  pulled: "StatePulled",
  stopped: "Stopped",
};
let atOnce = 200;
let sending = false;
let ended = "ended" in document.body.dataset;
let claimed = 0;
let polling = 0;

// Returns a text of the page with these values in place of each `…`.
function says(name, ...values) {
  return document.getElementById("kept").dataset[`text${name}`].replace(/…/g, () => values.shift());
}
function element(tag, css, text) {
  const made = document.createElement(tag);
  if (css) made.className = css;
  if (text !== undefined) made.textContent = text;
  return made;
}
// Returns a condition in short form, and the printing if the condition does not name it.
const CONDITIONS = Object.entries(JSON.parse(document.body.dataset.conditions ?? "{}"));
function variant({ condition, printing }) {
  const [words, letters] = CONDITIONS.find(
    ([long]) => condition === long || condition.startsWith(`${long} `),
  ) ?? ["", ""];
  const apart = printing && printing !== "Normal" && !condition.includes(printing);
  return [letters + condition.slice(words.length), apart && printing].filter(Boolean).join(" · ");
}
// Creates a picture like pictures.html. If a card has no picture, the server draws it.
const SIDES = { small: [29, 40], large: [195, 272] };
function picture(line, size) {
  const made = element("img", `pic ${size}`);
  const [width, height] = SIDES[size];
  Object.assign(made, { width, height, alt: "", decoding: "async" });
  made.src = `${base}/img/${line.item_id}/${size}`;
  // Without a network the picture may be missing; the name still identifies the card.
  made.addEventListener("error", () => made.remove());
  return made;
}
function name(tag, css, text) {
  const made = element(tag, css);
  made.append(element("bdi", "", text));
  return made;
}

// Returns the lines as they will be after the outbox has been sent.
function lines() {
  return (queue?.lines ?? []).map(line => {
    const shown = { ...line };
    for (const mark of outbox.filter(mark => mark.item_id === line.item_id)) {
      if (mark.kind === "pulled")
        shown.pulled = Math.min(shown.wanted, shown.pulled + mark.quantity);
      if (mark.kind === "missing") shown.state = "missing";
      if (mark.kind === "defer") shown.state = "deferred";
      if (mark.kind !== "undo") shown.last_mark = mark.id;
      if (mark.kind === "undo") {
        shown.state = "waiting";
        shown.last_mark = "";
        shown.pulled = line.pulled - (mark.back ?? 0);
      }
      if (shown.state !== "stopped" && shown.pulled >= shown.wanted) shown.state = "pulled";
    }
    return shown;
  });
}

function button(kind, label, css, line, quantity = 1, undoes = "") {
  const made = element("button", css, label);
  made.type = "button";
  made.addEventListener("click", () => mark(kind, line, quantity, undoes));
  return made;
}

function mark(kind, line, quantity, undoes, reason = "not_there") {
  const sequence = read("pull-sequence", 0) + 1;
  write("pull-sequence", sequence);
  const back = kind === "undo" && line.pulled ? 1 : 0;
  outbox.push({ id: newId(), kind, item_id: line.item_id, sequence, quantity, undoes, back, reason });
  write(key("outbox"), outbox);
  render();
  send();
}

const isOpen = line => ["waiting", "deferred"].includes(line.state);
function next(after) {
  const open = lines().filter(
    line => isOpen(line) && !line.claimed && line.item_id !== after?.item_id,
  );
  return open.find(line => line.state === "waiting") ?? open[0];
}

// Returns a card's set, number and condition. The condition is in bold, because copies differ by
// it.
function about(line) {
  const made = element("p", "muted");
  const words = [line.set_name, line.number].filter(Boolean).join(" · ");
  made.append(name("span", "", words), words ? " · " : "", name("b", "", variant(line) || "–"));
  return made;
}

function preview(line) {
  const made = element("p", "after"),
    words = element("span");
  words.append(says("Next"), element("bdi", "", line.name || "–"), element("br"));
  words.append(
    name("span", "muted", [line.set_name, variant(line)].filter(Boolean).join(" · ")),
  );
  made.append(picture(line, "small"), words);
  if (line.place) made.append(element("b", "", line.place));
  // Loads the next card's large picture in advance, so that it is available without a network.
  new Image().src = `${base}/img/${line.item_id}/large`;
  return made;
}

// Shows, in place of a card, that the pull has ended, that other phones have the remaining cards,
// or that all cards are pulled.
function rest(all) {
  const made = element("div", "empty");
  const others = all.some(one => one.claimed && isOpen(one));
  made.append(
    element("h2", "", ended ? says("Ended") : others ? says("Others") : says("Done")),
  );
  if (!ended && !others) {
    const count = name => all.reduce((sum, one) => sum + one[name], 0);
    const text = all.some(one => one.state === "missing") ? "DoneMissing" : "DoneCount";
    made.append(element("p", "muted", says(text, count("pulled"), count("wanted"))));
  }
  return made;
}

function askWhatIsMissing(line) {
  const sheet = document.getElementById("wrong");
  const left = line.wanted - line.pulled;
  const choice = (label, found, reason) => {
    const made = element("button", "", label);
    made.type = "button";
    made.addEventListener("click", () => {
      sheet.hidePopover();
      if (found) mark("pulled", line, found, "");
      mark("missing", line, 1, "", reason);
    });
    return made;
  };
  const some = Array.from({ length: Math.min(left, 5) - 1 }, (_, at) =>
    choice(says("Only", at + 1, left), at + 1),
  );
  const cancel = element("button", "plain", says("Cancel"));
  cancel.type = "button";
  cancel.addEventListener("click", () => sheet.hidePopover());
  sheet.replaceChildren(
    name("h2", "", [line.name || "–", line.place].filter(Boolean).join(", ")),
    choice(says("NoneHere"), 0),
    ...some,
    choice(says("Damaged"), 0, "damaged"),
    choice(says("OtherCard"), 0, "other_card"),
    cancel,
    element("p", "small muted", says("DeskDecides")),
  );
  sheet.showPopover();
}

// Tells the person to put back the shown card if its order was canceled in the meantime.
let seen = 0;
function tellStopped(all, line) {
  const before = all.find(one => one.item_id === seen);
  if (before?.state === "stopped") tell(says("WasStopped", before.name || "–"));
  seen = line?.item_id ?? 0;
}

function render() {
  if (!queue || !document.getElementById("current")) return;
  const all = lines();
  const line = next();
  const card = document.getElementById("current");
  card.replaceChildren();
  tellStopped(all, line);
  if (line && !ended) {
    const left = line.wanted - line.pulled;
    const item = element("div", "item");
    item.append(
      picture(line, "large"),
      ...(line.place
        ? [element("p", "place", line.place)]
        : all.some(one => one.place)
          ? [element("p", "muted", says("NoLocation"))]
          : []),
      name("h2", "", line.name || "–"),
      about(line),
      element("p", "quantity", says("Take", left)),
      name("p", "muted small", says("Order", line.order_number)),
    );
    if (line.changed.length)
      item.append(
        element(
          "p",
          "chip warn",
          says("Changed", line.changed.join(", ").replaceAll("_", " ")),
        ),
      );
    const marks = element("div", "marks");
    const label =
      left === 1 ? says("Got") : left === 2 ? says("GotBoth") : says("GotAll", left);
    marks.append(button("pulled", label, "primary", line, left));
    if (left > 1) marks.append(button("pulled", says("GotOne"), "quiet", line));
    const wrong = element("button", "danger", says("Missing"));
    wrong.type = "button";
    wrong.addEventListener("click", () => askWhatIsMissing(line));
    marks.append(button("defer", says("Later"), "quiet", line), wrong);
    const after = next(line);
    if (after) marks.append(preview(after));
    card.append(item, marks);
    claim(line);
  } else card.append(rest(all));
  const list = document.getElementById("lines");
  list.replaceChildren(
    ...[...all.filter(isOpen), ...all.filter(one => !isOpen(one))].map(one => {
      const row = element(
        "li",
        { pulled: "good", missing: "bad", stopped: "bad", deferred: "warn" }[one.state] ?? "",
      );
      row.dataset.item = one.item_id;
      const grow = element("div", "grow");
      const title = element("p");
      title.append(
        ...(one.place ? [element("span", "chip", one.place), " "] : []),
        element("bdi", "", one.name || "–"),
        " ",
        name("small", "muted", variant(one)),
      );
      grow.append(
        title,
        element(
          "p",
          "muted",
          [
            says("Progress", one.pulled, one.wanted),
            says(STATES[one.state]),
            one.claimed && says("Claimed"),
          ]
            .filter(Boolean)
            .join(" · "),
        ),
      );
      if (one.surplus) grow.append(element("p", "chip bad", says("PutBack", one.surplus)));
      row.append(grow);
      if (one.last_mark && !ended)
        row.append(button("undo", says("Undo"), "quiet", one, 1, one.last_mark));
      return row;
    }),
  );
  const pulled = all.reduce((sum, one) => sum + one.pulled, 0),
    wanted = all.reduce((sum, one) => sum + one.wanted, 0);
  const bar = document.querySelector("#progress progress");
  if (bar) {
    bar.max = wanted || 1;
    bar.value = pulled;
    document.querySelector("#progress .muted").textContent = says("Progress", pulled, wanted);
  }
  const unsent = ended ? 0 : outbox.length;
  const waits = unsent === 1 ? says("OneUnsent") : says("Unsent", unsent);
  document.getElementById("network").textContent =
    unsent === 0 ? "" : navigator.onLine ? waits : says("Saved", waits);
  const online = document.getElementById("online");
  online.hidden = ended;
  online.className = navigator.onLine ? "chip good" : "chip warn";
  online.textContent = says(navigator.onLine ? "Online" : "Offline");
  renderKept();
}

// Shows the marks that the server does not have: refused marks, and unsent marks after the link has
// ended. The same phone sends unsent marks later with a new link to the same queue.
function renderKept() {
  const left = [
    ...refused,
    ...(ended ? outbox.map(mark => ({ ...mark, why: says("LinkEnded") })) : []),
  ];
  const part = document.getElementById("kept");
  part.hidden = !left.length;
  if (part.hidden) return;
  const known = new Map((queue?.lines ?? []).map(line => [line.item_id, line]));
  part.querySelector("ul").replaceChildren(
    ...left.map(mark => {
      const line = known.get(mark.item_id),
        row = element("li", "warn"),
        grow = element("div", "grow");
      const title = element(
        "p",
        "",
        `${says(DONE[mark.kind])} ${mark.kind === "pulled" ? `${mark.quantity} × ` : ""}`,
      );
      title.append(
        name("span", "", line?.name || says("Card", mark.item_id)),
        line?.place ? ` (${line.place})` : "",
      );
      grow.append(
        title,
        element(
          "p",
          "muted",
          [line?.order_number && says("Order", line.order_number), mark.why]
            .filter(Boolean)
            .join(" · "),
        ),
      );
      row.append(grow);
      return row;
    }),
  );
}
function forget() {
  refused = [];
  write(key("refused"), refused);
  if (ended) {
    outbox = [];
    write(key("outbox"), outbox);
  }
  render();
  renderKept();
}

// Moves the marks that this phone could not send with an earlier link to the same queue into this
// link's outbox.
function adopt() {
  for (let at = localStorage.length - 1; at >= 0; at--) {
    const other = localStorage.key(at);
    if (!other.startsWith("pull-outbox-") || other === key("outbox")) continue;
    const from = read(other.replace("outbox", "queue"), null),
      waiting = read(other, []);
    if (
      !waiting.length ||
      from?.session_id !== queue.session_id ||
      from?.product_line !== queue.product_line
    )
      continue;
    const mine = new Set(outbox.map(mark => mark.id));
    outbox = [...waiting.filter(mark => !mine.has(mark.id)), ...outbox];
    write(key("outbox"), outbox);
    localStorage.removeItem(other);
  }
}

function tell(text) {
  const notice = element("div", "notice bad");
  notice.append(element("p", "", text));
  document.getElementById("notices").replaceChildren(notice);
}

async function ask(path, body) {
  const options = body
    ? {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(body),
      }
    : {};
  const answer = await fetch(base + path, options);
  if (answer.status === 410) {
    ended = true;
    render();
  }
  return answer;
}

let adopted = false;
function take(fresh) {
  queue = fresh;
  write(key("queue"), fresh);
  if (!adopted) {
    adopted = true;
    adopt();
    if (outbox.length) setTimeout(send);
  }
}

async function send() {
  if (sending || !outbox.length || ended) return;
  sending = true;
  const sent = outbox.slice(0, atOnce);
  try {
    const answer = await ask("/marks", {
      device,
      person: person(),
      marks: sent.map(({ back, ...mark }) => mark),
    });
    if (answer.ok) {
      const { outcomes, ...fresh } = await answer.json();
      const known = new Set(sent.map(mark => mark.id));
      outbox = outbox.filter(mark => !known.has(mark.id));
      write(key("outbox"), outbox);
      if (!outbox.length) atOnce = 200;
      take(fresh);
      const back = outcomes.reduce((sum, one) => sum + one.put_back, 0);
      if (back) tell(back === 1 ? says("OneSurplus") : says("Surplus", back));
    } else if ([400, 413, 422].includes(answer.status)) {
      // The server refused one of several marks: send them one by one in order to find it.
      if (sent.length > 1) atOnce = 1;
      else {
        const why = (await answer.json()).error ?? says("NotTaken");
        refused = [...refused, { ...sent[0], why }];
        write(key("refused"), refused);
        outbox = outbox.filter(mark => mark.id !== sent[0].id);
        write(key("outbox"), outbox);
        tell(says("Refused"));
      }
      if (outbox.length) setTimeout(send);
    }
  } catch {
    /* Without a network the marks stay in the outbox. */
  } finally {
    sending = false;
  }
  render();
}

async function refresh() {
  if (outbox.length) return send();
  const before = queue;
  try {
    const answer = await ask(`/queue?device=${device}`);
    // If marks were sent in the meantime, this answer is older than the queue in their answer.
    if (answer.ok && !outbox.length && queue === before) {
      take(await answer.json());
      render();
    }
  } catch {
    /* Without a network the stored queue stays. */
  }
}

async function claim(line, again = false) {
  if (claimed === line.item_id && !again) return;
  claimed = line.item_id;
  try {
    const answer = await ask("/claims", { device, item_id: line.item_id });
    if (answer.ok && !(await answer.json()).claimed) {
      const mine = queue.lines.find(one => one.item_id === line.item_id);
      if (mine) mine.claimed = true;
      render();
    }
  } catch {
    /* Without a network two phones may show the same card. The second person is then told to put a
       copy back. */
  }
}

document.querySelector("#kept button").addEventListener("click", forget);
if (ended) renderKept();
else begin();
function begin() {
  const events = new EventSource(`${base}/changes`);
  events.addEventListener("changed", () => {
    clearInterval(polling);
    polling = 0;
    refresh();
  });
  events.addEventListener("ended", () => {
    ended = true;
    events.close();
    render();
  });
  events.addEventListener("error", () => {
    polling ||= setInterval(refresh, 5000);
  });
  addEventListener("online", refresh);
  addEventListener("offline", render);
  setInterval(send, 5000);
  setInterval(() => {
    if (ended) return;
    const line = next();
    if (line) claim(line, true);
    // Other phones' claims expire without an event, so the queue is read again.
    else refresh();
  }, 30000);
  keep();
  render();
  refresh();
}
// Stores the page and its files, because the service worker was not active while they were loaded.
async function keep() {
  if (!navigator.serviceWorker) return;
  try {
    await navigator.serviceWorker.register("/p/worker.js", { scope: "/p/" });
    const files = [...document.querySelectorAll("link[rel=stylesheet], script[src]")].map(
      file => file.href || file.src,
    );
    await (await caches.open("pull-1")).addAll([...files, base]);
  } catch {
    /* Without a service worker the page still stores its marks. */
  }
}
