// What the checks of the console stand on: Chromium, an agent that asks, and findings that fail.
import { createRequire } from "node:module";
import { mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";

const require = createRequire(`${process.env.QM_MODULES}/node_modules/`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
export const URL_ = process.env.QM_URL;

export const launch = () => chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync"],
});

export const expect = (fine, what) => { if (!fine) throw new Error(what); };

// What was found wrong. The checks go on, so that one run tells all of it, and fail at the end.
export const findings = [];

// Violations of the policy, and errors of scripts, of every page; the checks fail on any.
export const violations = [];
// axe is not a part of the page, and what it does to it is not the page's doing.
let muted = false;
export const context = async (browser, options = {}) => {
  const made = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  made.setDefaultTimeout(30000);
  made.on("console", (message) => {
    if (!muted && /Content Security Policy|Content-Security-Policy|Trusted ?Type/i.test(message.text())) violations.push(message.text());
  });
  made.on("weberror", (error) => violations.push(`script: ${error.error().message}`));
  made.on("dialog", (dialog) => { violations.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  return made;
};

// Accessibility of a page, in both colour schemes and on a phone. axe is put in by the browser itself and not by the page.
export const accessible = async (page, name) => {
  for (const [scheme, width] of [["light", 1280], ["dark", 1280], ["dark", 320], ["light", 320]]) {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    await page.setViewportSize({ width, height: 800 });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
    if (wide) findings.push(`${name} is wider than ${width} pixels`);
    muted = true;
    await page.evaluate(axe);
    const found = await page.evaluate(() => globalThis.axe.run(document));
    muted = false;
    const told = found.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(" ")).join(", ")}`);
    if (told.length > 0) findings.push(`${name}, ${scheme}, ${width} pixels: axe found ${told.join("; ")}`);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
};

// Nothing that strangers wrote became a part of the page, and nothing of it is hidden.
export const clean = async (page, where) => {
  const found = await page.evaluate(() => ({
    forms: [...document.forms].filter((form) => new URL(form.action).origin !== location.origin).length,
    links: [...document.links].filter((link) => new URL(link.href).origin !== location.origin).length,
    scripts: document.querySelectorAll("script:not([src])").length,
    images: document.images.length,
    marks: /[\u202a-\u202e\u2066-\u2069\u200b]/.test(document.body.innerText),
  }));
  expect(Object.values(found).every((one) => !one), `${where}: ${JSON.stringify(found)}`);
};

export const ownToken = readFileSync(join(process.env.QM_DATA, "agent.token"), "utf8");
export const moreTokens = () => readFileSync(process.env.QM_AGENTS, "utf8").trim().split("\n");
export const api = async (token, path, body, headers = {}) => {
  const answer = await fetch(`${URL_}/v1${path}`, {
    method: "POST", body: JSON.stringify(body), headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json", ...headers },
  });
  return answer.json();
};

// An agent with its write tools loaded.
export const agent = async (toolsets, token = ownToken) => {
  const session = (await api(token, "/sessions", { mode: "write" })).id;
  const call = async (tool, args) => (await api(token, `/sessions/${session}/calls`, { tool, arguments: args }));
  for (const toolset of toolsets) await call("load_toolset", { toolset, include_write_tools: true });
  return {
    call,
    ask: async (tool, args) => {
      let answer = await call(tool, args);
      // A machine under load may be too slow for its store; whoever asks again gets the same run.
      for (let tries = 0; answer.error?.retryable && tries < 5; tries += 1) {
        await new Promise((done) => setTimeout(done, 500));
        answer = await call(tool, args);
      }
      expect(answer.result?.run?.id, `no run: ${JSON.stringify(answer).slice(0, 400)}`);
      return answer.result.run.id;
    },
  };
};

// The links that `dev` printed; each signs in once.
export const links = () => Object.fromEntries(
  [...readFileSync(process.env.QM_LOG, "utf8").matchAll(/^ {2}(approver|admin|sre|owner) +(http\S+\/console\/link\/\S+)$/gm)].map((m) => [m[1], m[2]]));

// Signs in to the provider: its own pages ask for a name, and for consent.
export const signInAtIssuer = async (page, name) => {
  await page.locator("input[name=login]").fill(name);
  await page.locator("input[name=password]").fill("any");
  await page.locator("button[type=submit]").click();
  await page.waitForURL((url) => url.pathname.startsWith("/console") || url.pathname.startsWith("/interaction"));
  if (new URL(page.url()).pathname.startsWith("/interaction")) await page.locator("button[type=submit]").click();
};
export const temporary = () => mkdtempSync(join(process.env.QM_WORK, "browser."));
