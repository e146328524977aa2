// Signs in with a passkey, and creates one. Without this script the password form stays. Elements
// with data-passkey are shown only if the browser supports passkeys.
const bytes = text =>
  Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), letter =>
    letter.charCodeAt(0),
  );
const text = buffer =>
  btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");

async function send(path, body) {
  const headers = { "Content-Type": "application/json" };
  const token = document.querySelector("meta[name=csrf-token]")?.content;
  if (token) headers["X-CSRF-Token"] = token;
  const answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error || "");
  return told;
}

function readable(options) {
  options.challenge = bytes(options.challenge);
  if (options.user) options.user.id = bytes(options.user.id);
  for (const list of [options.excludeCredentials, options.allowCredentials])
    for (const one of list || []) one.id = bytes(one.id);
  return { publicKey: options };
}

function told(credential) {
  const { response } = credential;
  const parts = { clientDataJSON: text(response.clientDataJSON) };
  if (response.attestationObject) {
    parts.attestationObject = text(response.attestationObject);
    parts.transports = response.getTransports?.() || [];
  } else {
    parts.authenticatorData = text(response.authenticatorData);
    parts.signature = text(response.signature);
    if (response.userHandle) parts.userHandle = text(response.userHandle);
  }
  return {
    id: credential.id,
    rawId: text(credential.rawId),
    type: credential.type,
    response: parts,
    clientExtensionResults: {},
  };
}

async function signIn(next) {
  const { publicKey } = await send("/api/session/passkey/options", {});
  const credential = await navigator.credentials.get(readable(publicKey));
  await send("/api/session/passkey", { credential: told(credential) });
  location.assign(`/sign-in?next=${encodeURIComponent(next)}`);
}

async function add(name) {
  const { publicKey } = await send("/api/passkeys/options", {});
  const credential = await navigator.credentials.create(readable(publicKey));
  await send("/api/passkeys", { name, credential: told(credential) });
  location.assign("/settings/sign-in?done=passkey_kept");
}

// A person who closes the browser's own dialog does not need an error message.
const sentence = (error, part) =>
  error.name === "NotAllowedError"
    ? part.dataset.textUnused
    : error.message || part.dataset.textFailed;

for (const part of document.querySelectorAll("[data-passkey]")) {
  if (!window.PublicKeyCredential) continue;
  part.hidden = false;
  const says = part.querySelector("[role=status]");
  const button = part.querySelector("button");
  const act = async event => {
    event.preventDefault();
    button.disabled = true;
    says.textContent = "";
    try {
      await (part.dataset.passkey === "sign-in"
        ? signIn(part.dataset.next)
        : add(part.querySelector("input[name=name]").value));
    } catch (error) {
      says.textContent = sentence(error, part);
    } finally {
      button.disabled = false;
    }
  };
  if (part.matches("form")) part.addEventListener("submit", act);
  else button.addEventListener("click", act);
}
