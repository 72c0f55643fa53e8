// Keeps the page fresh: fetches a part again when the server says that it changed. Everything is
// on the page without this file.
"use strict";

const link = document.getElementById("link");
const announcer = document.getElementById("announcer");
const skew = Date.parse(document.body.dataset.now) - Date.now();
const epoch = document.body.dataset.epoch;
// Of each part, the revision that the page shows; nothing is known of it after the stream was lost.
let shown = JSON.parse(document.body.dataset.revisions);

function brief(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

function tick() {
  const now = Date.now() + skew;
  for (const time of document.querySelectorAll("time[data-ago], time[data-until]")) {
    const at = Date.parse(time.dateTime);
    const text = "ago" in time.dataset ? brief(now - at) : at - now >= 1000 ? `in ${brief(at - now)}` : "now";
    if (time.textContent !== text) time.textContent = text;
  }
}

// A part that is being read stays as it is: what is selected, focused or being pressed would be lost.
let pressed = null;
document.addEventListener("pointerdown", (event) => { pressed = event.target; });
for (const end of ["pointerup", "pointercancel"]) {
  document.addEventListener(end, () => setTimeout(() => { pressed = null; }, 100));
}

function isInUse(part) {
  const selection = getSelection();
  return part.contains(document.activeElement) || (pressed && part.contains(pressed))
    || (selection && !selection.isCollapsed && part.contains(selection.anchorNode));
}

const pending = new Map();

// Rows that change under the pointer cannot be pressed: no part changes more often than this.
const CALM = 1000;
const replaced = new Map();

async function refresh(name) {
  const early = CALM - (performance.now() - (replaced.get(name) ?? -CALM));
  if (early > 0 && !pending.has(name)) {
    pending.set(name, false);
    setTimeout(() => {
      pending.delete(name);
      refresh(name);
    }, early);
    return;
  }
  if (pending.has(name)) {
    pending.set(name, true);
    return;
  }
  pending.set(name, false);
  try {
    const response = await fetch(`/parts/${name}${location.search}`);
    const part = document.querySelector(`[data-part="${CSS.escape(name)}"]`);
    // Nothing but a part of this page is put into it, whatever a name makes of an address.
    const isPart = new URL(response.url).pathname.startsWith("/parts/")
      && (response.headers.get("content-type") ?? "").startsWith("text/html");
    if (isPart && part) replace(part, await response.text());
  } catch {
    // The stream notices by itself when the server is gone. What was not heard is asked for again.
    shown = {};
  }
  const again = pending.get(name);
  pending.delete(name);
  if (again) setTimeout(refresh, 300, name);
}

function replace(part, html) {
  if (isInUse(part)) {
    for (const end of ["focusout", "pointerup"]) {
      part.addEventListener(end, () => setTimeout(refresh, 200, part.dataset.part), { once: true });
    }
    return;
  }
  replaced.set(part.dataset.part, performance.now());
  const open = [...part.querySelectorAll("details[open]")].map((it) => it.id);
  part.innerHTML = html;
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  tick();
}

function say(text, level) {
  link.textContent = text;
  link.className = `link ${level}`;
}

// A browser allows six connections to a server: a page that nobody sees holds none. An answer other than 200 ends a
// stream for good, so that a new one is opened after a while.
let stream = null;

function follow() {
  if (stream) shown = {};
  stream?.close();
  stream = null;
  if (document.hidden) return;
  stream = new EventSource("/api/v1/stream");
  stream.addEventListener("changed", changed);
  stream.addEventListener("happened", happened);
  stream.addEventListener("open", () => {
    say("live", "good");
    answersAgain();
  });
  stream.addEventListener("error", () => {
    shown = {};
    say("not connected, trying again", "warn");
    if (stream?.readyState === EventSource.CLOSED) setTimeout(follow, 5000);
  });
}

function changed(message) {
  const changed = JSON.parse(message.data);
  // A page of an earlier process is of no use. Behind a balancer every answer may be another process's: not without a pause.
  if (epoch !== changed.epoch) {
    if (Date.now() - Number(sessionStorage.getItem("reloaded")) > 10000) {
      sessionStorage.setItem("reloaded", Date.now());
      location.reload();
      return;
    }
    say("answers come from different processes", "warn");
  }
  document.title = `${changed.level === "bad" || changed.level === "warn" ? "! " : ""}krane · ${changed.sentence}`;
  for (const part of document.querySelectorAll("[data-part]")) {
    const causes = (part.dataset.on ?? part.dataset.part).split(" ");
    if (causes.some((cause) => shown[cause] !== changed.revisions[cause])) refresh(part.dataset.part);
  }
  shown = changed.revisions;
}

function happened(message) {
  const event = JSON.parse(message.data);
  if (event.level === "good") return;
  announcer.textContent = `${event.object ?? event.actor ?? event.controller ?? ""} ${event.text}`;
}

document.addEventListener("visibilitychange", follow);
follow();

// What is typed into a filter is in the address, so that it can be sent to somebody else.
let typing = 0;
for (const filter of document.querySelectorAll("[data-filters]")) {
  filter.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      const address = new URL(location.href);
      if (filter.value) address.searchParams.set(filter.name, filter.value);
      else address.searchParams.delete(filter.name);
      address.searchParams.delete("page");
      history.replaceState(null, "", address);
      refresh(filter.dataset.filters);
    }, 150);
  });
}

document.addEventListener("keydown", (event) => {
  if (event.target.matches?.("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") {
    event.preventDefault();
    document.getElementById("filter")?.focus();
  } else if (event.key === "j" || event.key === "k") {
    const rows = [...document.querySelectorAll("a.open")];
    const at = rows.indexOf(document.activeElement);
    rows[at < 0 ? 0 : at + (event.key === "j" ? 1 : -1)]?.focus();
  }
});

// What was said before this page was there is no answer to it.
document.getElementById("said")?.classList.add("read");

// The answer to a button goes on until it is told what came of it. A browser has few connections: one is enough for this.
let answer = new AbortController();
let read = 0;

async function press(form, body, said) {
  answer.abort();
  const mine = answer = new AbortController();
  // A button of that name hides the form's own property.
  const response = await fetch(form.getAttribute("action"), { method: "POST", body, headers: { accept: "text/plain" }, signal: mine.signal });
  let text = "";
  for (const reader = response.body.pipeThrough(new TextDecoderStream()).getReader(); ;) {
    const { value, done } = await reader.read();
    if (done) break;
    text += value;
    said.textContent = text;
  }
  if (!text) said.textContent = `This was not done (${response.status}).`;
  // It stays where it is, and leaves the top of the window to what comes next.
  clearTimeout(read);
  read = setTimeout(() => said.classList.add("read"), 15000);
}

// The action whose answer was lost, such as one that killed the server of this very page.
let lost = null;

function answersAgain() {
  if (!lost) return;
  const path = lost.get("path");
  document.getElementById("said").textContent = path?.endsWith("/admin")
    ? `krane's actor ${path}, the server of this page, was killed; the page is back`
    : "The page is back; what came of the button was not heard.";
  lost = null;
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  event.preventDefault();
  if (form.method !== "post") return;
  const body = new URLSearchParams(new FormData(form, event.submitter));
  const said = document.getElementById("said");
  event.submitter.blur();
  said.classList.remove("read");
  lost = null;
  try {
    await press(form, body, said);
  } catch (error) {
    if (error.name === "AbortError") return;
    said.textContent = "The server does not answer.";
    lost = body;
  }
});

setInterval(tick, 1000);
for (const part of document.querySelectorAll("[data-every]")) {
  setInterval(() => stream?.readyState === EventSource.OPEN && refresh(part.dataset.part), 1000 * part.dataset.every);
}
// The demo's story is no part of krane, so that nobody announces it.
if (document.querySelector("[data-part=story]")) {
  setInterval(() => stream?.readyState === EventSource.OPEN && refresh("story"), 1000);
}
