// Times by the server's clock, and buttons that are armed a moment after they appeared.
const drawn = Number(document.body.dataset.now);
// How far this computer's clock is from the server's; a wrong clock here changes nothing that is shown.
let skew = drawn - Date.now();

export const serverNow = () => Date.now() + skew;
export const setServerTime = (millis) => { skew = millis - Date.now(); };

const span = (seconds) => {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} days`;
};

export const tick = () => {
  const now = serverNow();
  for (const time of document.querySelectorAll("time[data-at]")) {
    const left = Math.trunc((Number(time.dataset.at) - now) / 1000);
    const text = left > 0 ? `in ${span(left)}` : `${span(-left)} ago`;
    if (time.textContent !== text) time.textContent = text;
  }
};

// Every reason for which decisions are off; they are on when there is none.
const reasons = new Map();
const apply = () => {
  const told = [...reasons.values()].filter((reason) => reason);
  for (const button of document.querySelectorAll("button[data-arm]")) button.disabled = reasons.size > 0;
  const hint = document.getElementById("decision-hint");
  if (hint) { hint.textContent = told[0] ?? ""; hint.hidden = told.length === 0; }
};
export const disarm = (why, text) => { reasons.set(why, text); apply(); };
export const rearm = (why) => { reasons.delete(why); apply(); };

let arming;
// Called whenever something moved: a click that was meant for what stood here before decides nothing.
export const arm = () => {
  const button = document.querySelector("button[data-arm]");
  if (!button) return;
  disarm("arm", "");
  clearTimeout(arming);
  arming = setTimeout(() => rearm("arm"), Number(button.dataset.arm));
};

arm();
tick();
setInterval(tick, 1000);
