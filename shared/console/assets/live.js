// Live updates: the server says that something moved, and the page reads itself again.
import { arm, disarm, rearm, setServerTime, tick } from "./clock.js";

// A stream that is silent for longer than this is taken for broken; the server speaks every ten seconds.
const SILENT = 25000;
const address = document.body.dataset.live;
const freshness = document.getElementById("freshness");
// The only place where text becomes elements: pages of this server, read by this script.
const policy = globalThis.trustedTypes?.createPolicy("qm", { createHTML: (text) => text }) ?? { createHTML: (text) => text };

const asOf = (text) => {
  const time = new Date(lastTime).toISOString().slice(11, 19);
  freshness.textContent = `${text} ${time} UTC`;
};
let lastHeard = Date.now();
let lastTime = Number(document.body.dataset.now);
let stale = false;

const read = async () => {
  const answer = await fetch(document.body.dataset.page ?? location.href, { headers: { "X-Requested-With": "live" }, redirect: "manual", cache: "no-store" });
  if (!answer.ok) throw new Error(String(answer.status));
  return new DOMParser().parseFromString(policy.createHTML(await answer.text()), "text/html");
};

const counts = (page) => {
  const [now, next] = [document, page].map((doc) => doc.getElementById("waiting-count"));
  if (now && next && now.dataset.count !== next.dataset.count) now.replaceWith(next);
  document.title = page.title;
};

const rowsOf = (doc) => new Map([...doc.querySelectorAll("#inbox .run")].map((row) => [row.id, row]));
let waitingPage;

// Rows never move under the pointer: what is gone is marked, what is new waits behind a bar.
const list = (page) => {
  const [now, next] = [rowsOf(document), rowsOf(page)];
  let fresh = 0;
  for (const id of next.keys()) if (!now.has(id)) fresh += 1;
  for (const [id, row] of now) {
    const other = next.get(id);
    if (!other && !row.hasAttribute("data-gone")) {
      row.setAttribute("data-gone", "");
      const note = document.createElement("p");
      note.className = "facts";
      note.textContent = "No longer on this list: decided, expired or taken back. Open it to see what became of it.";
      row.append(note);
    } else if (other && other.dataset.state !== row.dataset.state) row.replaceWith(other.cloneNode(true));
  }
  waitingPage = page;
  const bar = document.getElementById("news");
  const empty = now.size === 0 && next.size > 0;
  if (empty) return show();
  if (!bar) return;
  bar.hidden = fresh === 0;
  document.getElementById("show-news").textContent = `Show ${fresh} new`;
};

const show = () => {
  const next = waitingPage?.getElementById("inbox");
  if (!next) return;
  document.getElementById("inbox").replaceWith(next);
  document.getElementById("news").hidden = true;
  arm();
  tick();
};

const run = (page) => {
  const [now, next] = [document, page].map((doc) => doc.getElementById("run"));
  if (!now || !next || now.dataset.changed === next.dataset.changed) return;
  // What was typed is kept as long as there is still something to decide.
  for (const field of next.querySelectorAll("input[id], select[id], textarea[id]")) {
    const typed = document.getElementById(field.id);
    if (typed?.value) field.value = typed.value;
  }
  const focused = document.activeElement?.id;
  now.replaceWith(next);
  if (focused) document.getElementById(focused)?.focus();
  arm();
  tick();
};

let reading = false;
let again = false;
const refresh = async () => {
  if (reading) { again = true; return; }
  reading = true;
  try {
    const page = await read();
    counts(page);
    if (document.getElementById("run")) run(page); else if (document.getElementById("inbox")) list(page);
    lastTime = Number(page.body.dataset.now);
    setServerTime(lastTime);
    fine();
  } catch {
    old();
  }
  reading = false;
  if (again) { again = false; refresh(); }
};

const fine = () => {
  stale = false;
  document.body.removeAttribute("data-stale");
  rearm("stale");
  asOf("As of");
};
const old = () => {
  stale = true;
  document.body.setAttribute("data-stale", "");
  disarm("stale", "This page may be old. Decisions are off until it was read again.");
  asOf("No connection. Shown as of");
};

if (address) {
  const stream = new EventSource(address);
  stream.addEventListener("beat", (event) => {
    lastHeard = Date.now();
    lastTime = Number(event.data);
    setServerTime(lastTime);
    if (stale) refresh(); else asOf("As of");
  });
  // What moved while nobody listened, between the drawing of the page and now, or during a break, is read now.
  stream.addEventListener("open", () => { lastHeard = Date.now(); refresh(); });
  stream.addEventListener("changed", () => { lastHeard = Date.now(); refresh(); });
  stream.addEventListener("out", () => { stream.close(); location.reload(); });
  stream.addEventListener("error", () => { if (stream.readyState === EventSource.CLOSED) old(); });
  document.getElementById("show-news")?.addEventListener("click", show);
  setInterval(() => { if (!stale && Date.now() - lastHeard > SILENT) old(); }, 1000);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
}
