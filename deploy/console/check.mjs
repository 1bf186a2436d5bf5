// The console as people use it. Every check is a function; what fails is told at the end, with everything else that does.
import { accessible, agent, clean, context, expect, findings, launch, links, moreTokens, signInAtIssuer, URL_, violations } from "./browser.mjs";
import { begin, watch } from "./watch.mjs";
import { configure } from "./configure.mjs";
import { everyScreen } from "./screens.mjs";
import { mkdirSync } from "node:fs";

const browser = await launch();
const pictures = process.env.QM_PICTURES;
if (pictures) mkdirSync(pictures, { recursive: true });
const shown = links();
expect(shown.approver && shown.owner, `dev printed no links: ${JSON.stringify(shown)}`);

const picture = async (page, name) => {
  if (!pictures) return;
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
  for (const width of [320, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    await page.evaluate(() => { document.activeElement?.blur(); globalThis.scrollTo(0, 0); });
    const height = Math.min(await page.evaluate(() => document.documentElement.scrollHeight), 1400);
    await page.setViewportSize({ width, height });
    await page.screenshot({ path: `${pictures}/${name}-${width}.png`, animations: "disabled", caret: "hide" });
  }
  await page.setViewportSize({ width: 1280, height: 800 });
};
const chosen = new RegExp(process.env.STEPS ?? "");
const step = async (name, work) => {
  if (!chosen.test(name)) return;
  const began = Date.now();
  try {
    await work();
    console.log(`ok ${name} (${Date.now() - began} ms)`);
  } catch (error) {
    findings.push(`${name}: ${error.stack.split("\n").slice(0, 4).join(" ")}`);
    console.log(`FAILED ${name}`);
  }
};
const inbox = `${URL_}/console`;
const runPage = (id) => `${inbox}/runs/${id}`;
const stateOf = (page) => page.locator("#run").getAttribute("data-state");

const people = await context(browser);
const page = await people.newPage();

await step("one click signs in by a link, and the empty inbox says so", async () => {
  await page.goto(`${inbox}/sign-in`);
  await accessible(page, "sign-in");
  await picture(page, "sign-in");
  await page.goto(shown.approver);
  await page.waitForURL(inbox);
  expect(await page.getByText("Nothing waits for you.").isVisible(), "an empty inbox");
  const cookie = (await people.cookies()).find((one) => one.name.startsWith("qm"));
  expect(cookie?.httpOnly && cookie.sameSite === "Lax", `the cookie is ${JSON.stringify(cookie)}`);
  await accessible(page, "empty inbox");
  await picture(page, "inbox-empty");
  const again = await people.newPage();
  const answer = await again.goto(shown.approver);
  expect(answer.status() === 403, "a link works once");
  await again.close();
});

const watcher = await begin({ browser, link: shown.sre, step, picture });
const shop = await agent(["k8s"]);
let tutorial;
await step("a request appears by itself behind a bar, and the title counts it", async () => {
  tutorial = await shop.ask("k8s_rollout", { action: "undo", kind: "Deployment", name: "checkout" });
  await page.locator(`#${tutorial}`).waitFor();
  expect((await page.title()).startsWith("(1)"), `the title is ${await page.title()}`);
  const second = await shop.ask("k8s_scale", { kind: "Deployment", name: "cart-worker", replicas: 2 });
  await page.locator("#show-news").waitFor({ state: "visible" });
  expect(await page.locator(`#${second}`).count() === 0, "no row moves under the pointer");
  await page.locator("#show-news").click();
  await page.locator(`#${second}`).waitFor();
  await accessible(page, "inbox");
  await picture(page, "inbox");
});

await step("the tutorial by mouse: read, type the name, approve, see it done", async () => {
  await page.locator(`#${tutorial} a`).first().click();
  await page.waitForURL(runPage(tutorial));
  for (const text of ["Risks", "What changes", "Arguments", "Decide", "Timeline"]) {
    expect(await page.getByRole("heading", { name: text, exact: true }).isVisible(), text);
  }
  expect((await page.locator("#run").innerText()).includes("checkout:2.7.1"), "the difference is shown");
  await accessible(page, "run");
  await picture(page, "run");
  await page.locator("#typed").fill("not-it");
  await page.locator("#approve button:enabled").click();
  await page.getByText("the typed name is not that of the object").waitFor();
  expect(await stateOf(page) === "pending_approval", "and the run waits");
  await page.locator("#typed").fill("checkout");
  await page.locator("#approve button:enabled").click();
  await page.waitForURL(runPage(tutorial));
  await page.locator('#run[data-state="succeeded"]').waitFor();
  await accessible(page, "finished run");
  await picture(page, "run-done");
});

await step("a button that has just appeared takes no click", async () => {
  const run = await shop.ask("k8s_scale", { kind: "Deployment", name: "cart-worker", replicas: 3 });
  await page.goto(runPage(run));
  const early = await page.evaluate(() => [...document.querySelectorAll("button[data-arm]")].every((button) => button.disabled));
  expect(early, "buttons are armed too early");
  await page.locator("#reject button:enabled").waitFor();
});

await step("by keyboard only", async () => {
  const run = await shop.ask("k8s_scale", { kind: "Deployment", name: "cart-worker", replicas: 4 });
  await page.goto(inbox);
  await page.locator(`#${run}`).waitFor();
  for (let tries = 0; tries < 20; tries += 1) {
    await page.keyboard.press("j");
    if (await page.locator(`#${run}[data-chosen]`).count()) break;
  }
  await page.keyboard.press("Enter");
  await page.waitForURL(runPage(run));
  await page.locator("#reject button:enabled").waitFor();
  await page.keyboard.press("r");
  await page.keyboard.press("Tab");
  await page.keyboard.type("scale it tomorrow");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.locator('#run[data-state="rejected"]').waitFor();
  await page.getByText("scale it tomorrow").first().waitFor();
});

await step("without JavaScript", async () => {
  const plain = await context(browser, { javaScriptEnabled: false });
  await plain.addCookies(await people.cookies());
  const run = await shop.ask("k8s_scale", { kind: "Deployment", name: "cart-worker", replicas: 5 });
  const bare = await plain.newPage();
  await bare.goto(inbox);
  await bare.locator(`#${run} a`).first().click();
  await bare.locator("#reason").fill("no scripts, no matter");
  await bare.locator("#reject button").click();
  await bare.locator('#run[data-state="rejected"]').waitFor();
  await bare.goto(`${inbox}/runs`);
  await bare.locator("#filter-state").selectOption("rejected");
  await bare.locator("#filters button").click();
  expect(new URL(bare.url()).searchParams.get("state") === "rejected", "the filter stands in the address");
  expect(await bare.locator(`#${run}`).count() === 1, "and the run is in the list");
  await plain.close();
});

await step("sign-in at an OpenID provider, back to the run that was asked for", async () => {
  const run = await shop.ask("k8s_scale", { kind: "Deployment", name: "cart-worker", replicas: 6 });
  const fresh = await context(browser);
  const visit = await fresh.newPage();
  await visit.goto(runPage(run));
  await visit.getByRole("link", { name: "Sign in with Example Login" }).click();
  await signInAtIssuer(visit, "ana.approver");
  await visit.waitForURL(runPage(run));
  await visit.getByText("ana.approver").first().waitFor();
  // The callback of a sign-in that is over does nothing.
  await visit.goto(`${inbox}/callback?code=x&state=y`);
  await visit.getByText("this sign-in is over").waitFor();
  await visit.goto(runPage(run));
  // Two browsers, one decision: the loser learns who won.
  // This one does not hear of the other's decision in time.
  await page.route("**/live", (route) => route.abort());
  await page.goto(runPage(run));
  await page.locator("#reject button:enabled").waitFor();
  await visit.locator("#reject button:enabled").click();
  await visit.locator('#run[data-state="rejected"]').waitFor();
  await page.evaluate(() => document.querySelector("#approve").submit());
  await page.locator(".notice[data-kind=bad]").waitFor();
  expect((await page.locator(".notice").innerText()).includes("rejected by ana.approver"), "who won is told");
  await page.unroute("**/live");
  // Signing out ends it.
  await visit.getByRole("button", { name: "Sign out" }).click();
  await visit.waitForURL(/sign-in/);
  await visit.goto(runPage(run));
  expect(visit.url().includes("/sign-in"), "signed out");
  await fresh.close();
  const nobody = await context(browser);
  const stranger = await nobody.newPage();
  await stranger.goto(`${inbox}/sign-in`);
  await stranger.getByRole("link", { name: "Sign in with Example Login" }).click();
  await signInAtIssuer(stranger, "eve.nobody");
  await stranger.getByText("nothing here is yours").waitFor();
  await nobody.close();
});

await step("a disruptive run wants a fresh proof of who approves", async () => {
  const fresh = await context(browser);
  const visit = await fresh.newPage();
  await visit.goto(`${inbox}/sign-in`);
  await visit.getByRole("link", { name: "Sign in with Example Login" }).click();
  await signInAtIssuer(visit, "ben.approver");
  await visit.waitForURL(inbox);
  const run = await shop.ask("k8s_scale", { kind: "Deployment", name: "cart-worker", replicas: 0 });
  await new Promise((done) => setTimeout(done, 21000));
  await visit.goto(runPage(run));
  expect(await visit.locator("#approve").count() === 0, "the old proof is not enough");
  await accessible(visit, "step-up");
  await picture(visit, "run-step-up");
  await visit.locator("#step-up").click();
  await signInAtIssuer(visit, "ben.approver");
  await visit.waitForURL(runPage(run));
  await visit.locator("#typed").fill("cart-worker");
  await visit.locator("#approve button:enabled").click();
  await visit.locator('#run[data-state="succeeded"]').waitFor();
  await fresh.close();
});

const { people: admins, wiki } = await configure({ browser, link: shown.admin, step, picture });

await step("a cut stream says so and takes the decisions away; a wrong clock changes nothing", async () => {
  const run = await shop.ask("k8s_scale", { kind: "Deployment", name: "cart-worker", replicas: 7 });
  const skewed = await context(browser);
  await skewed.addCookies(await people.cookies());
  await skewed.addInitScript(() => {
    const real = Date.now.bind(Date);
    Date.now = () => real() + 5 * 60 * 1000;
  });
  const visit = await skewed.newPage();
  await visit.goto(runPage(run));
  const expires = await visit.locator(".expiry time").first().innerText();
  await page.goto(runPage(run));
  const honest = await page.locator(".expiry time").first().innerText();
  const minutes = (text) => Number(/(\d+) min/.exec(text)?.[1] ?? 0) + 60 * Number(/(\d+) h/.exec(text)?.[1] ?? 0);
  expect(Math.abs(minutes(expires) - minutes(honest)) <= 1, `${expires} and ${honest}`);
  await visit.locator("#reject button:enabled").waitFor();
  // The server falls silent, as behind a broken line: nothing ends, and nothing comes.
  process.kill(Number(process.env.QM_SERVER_PID), "SIGSTOP");
  await visit.locator("body[data-stale]").waitFor({ timeout: 40000 });
  expect(await visit.locator("#reject button").isDisabled(), "decisions are off");
  await picture(visit, "run-stale");
  process.kill(Number(process.env.QM_SERVER_PID), "SIGCONT");
  await visit.locator("body:not([data-stale])").waitFor({ timeout: 40000 });
  await visit.locator("#reject button:enabled").waitFor();
  await skewed.close();
});

await step("hostile text is visible, and nothing of it runs", async () => {
  const hostile = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e\u200b\u2066<form action=https://evil.example><button>Approve</button></form>javascript:alert(3)";
  const manifest = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "hostile", namespace: "shop" }, data: { text: hostile, long: "x".repeat(100000) } };
  const run = await shop.ask("k8s_apply", { manifest: JSON.stringify(manifest) });
  for (const address of [inbox, runPage(run), `${inbox}/runs?object=${encodeURIComponent(hostile)}&requester=${encodeURIComponent(hostile)}`]) {
    await page.goto(address);
    await clean(page, address);
  }
  await page.goto(runPage(run));
  expect((await page.locator("#run").innerText()).includes("<script>alert(1)</script>"), "it is shown as it was written");
  await accessible(page, "hostile run");
  await picture(page, "run-hostile");
});

await step("a form of others decides nothing, and nothing is decided by GET", async () => {
  const run = await shop.ask("k8s_scale", { kind: "Deployment", name: "cart-worker", replicas: 8 });
  await page.goto(runPage(run));
  const [token, digest] = await page.evaluate(() => ["token", "digest"].map((name) => document.querySelector(`#reject [name=${name}]`).value));
  const cookie = (await people.cookies()).map((one) => `${one.name}=${one.value}`).join("; ");
  const send = (fields, headers, method = "POST") => fetch(`${runPage(run)}/reject`, {
    method, redirect: "manual", body: method === "POST" ? new URLSearchParams(fields) : undefined, headers: { Cookie: cookie, ...headers },
  });
  const own = { "Sec-Fetch-Site": "same-origin" };
  for (const [why, fields, headers] of [
    ["another site", { token, digest }, { "Sec-Fetch-Site": "cross-site" }],
    ["a neighbour", { token, digest }, { "Sec-Fetch-Site": "same-site" }],
    ["another origin", { token, digest }, { Origin: "https://evil.example" }],
    ["no word at all", { token, digest }, {}],
    ["no token", { digest }, own],
    ["another token", { token: "0".repeat(64), digest }, own],
    ["another digest", { token, digest: "0".repeat(64) }, own],
  ]) {
    const answer = await send(fields, headers);
    expect(answer.status >= 400 && answer.status < 500, `${why}: ${answer.status}`);
  }
  expect((await send({}, own, "GET")).status === 404, "a GET decides");
  await page.goto(runPage(run));
  expect(await stateOf(page) === "pending_approval", "the run still waits");
  expect((await send({ token, digest, reason: "by a form of ours" }, own)).status === 303, "a form of ours decides");
  const headers = (await fetch(inbox, { headers: { Cookie: cookie } })).headers;
  expect(/require-trusted-types-for 'script'/.test(headers.get("content-security-policy")), "the policy");
  for (const [name, value] of [["cache-control", "no-store"], ["x-content-type-options", "nosniff"], ["cross-origin-opener-policy", "same-origin"], ["cross-origin-resource-policy", "same-origin"]]) {
    expect(headers.get(name) === value, `${name} is ${headers.get(name)}`);
  }
});

await step("not now: a run leaves one inbox and comes back, by mouse and without JavaScript", async () => {
  const run = await shop.ask("k8s_scale", { kind: "Deployment", name: "cart-worker", replicas: 9 });
  await page.goto(runPage(run));
  await page.locator("#for").selectOption("10m");
  await page.locator("#later button").click();
  await page.waitForURL(inbox);
  expect(await page.locator(`#waiting #${run}`).count() === 0, "it left the inbox");
  await page.locator("#put-off summary").click();
  await accessible(page, "inbox with runs put off");
  await picture(page, "inbox-put-off");
  const plain = await context(browser, { javaScriptEnabled: false });
  await plain.addCookies(await people.cookies());
  const bare = await plain.newPage();
  await bare.goto(runPage(run));
  await bare.locator("#now button").click();
  await bare.locator("#later").waitFor();
  await bare.goto(inbox);
  expect(await bare.locator(`#waiting #${run}`).count() === 1, "it is back");
  await plain.close();
});

await watch({ browser, ...watcher, step, picture });

await step("every screen, for everybody who sees it", async () => {
  const owner = await context(browser);
  const own = await owner.newPage();
  await own.goto(shown.owner);
  await own.waitForURL(`${inbox}/mine`);
  expect(await own.locator(".run").count() > 0, "an owner sees what the agent asked for");
  const waits = await shop.ask("k8s_rollout", { action: "restart", kind: "Deployment", name: "frontend" });
  const entry = await watcher.page.goto(`${inbox}/audit?tool=k8s_scale`).then(() => watcher.page.locator("#entries tbody tr a").first().getAttribute("href"));
  const [sre, approver] = [watcher.people, people];
  await everyScreen({ browser, picture, screens: [
    ["inbox-now", "", approver], [`a waiting run`, `/runs/${waits}`, approver], ["a finished run", `/runs/${tutorial}`, approver],
    ["runs", "/runs", approver, true], ["runs-none", "/runs?tool=no_such_tool", approver, true], ["mine-none", "/mine", approver, true],
    ["nothing", "/no-such-page", approver, true], ["no-run", "/runs/run_0000000000000000000000", approver, true], ["mine", "/mine", owner, true],
    ["audit log", "/audit", sre], ["an entry", entry.replace("/console", ""), sre], ["an empty search", "/audit?tool=no_such_tool", sre],
    ["open sessions", "/sessions", sre], ["usage by day", "/usage", sre], ["readiness and switches", "/operations", sre],
    ["toolsets", "/catalog", sre], ["tools", "/catalog?toolset=k8s", sre], ["a tool", "/catalog/k8s_scale?for=writer", sre],
    ["configuration", "/config", admins], ["versions", "/config/history", admins], ["a version", "/config/history/2", admins],
    ["every key", "/config/keys", admins], ["external servers", "/servers", admins], ["a server", "/servers/wiki", admins],
    ["all secrets", "/secrets", admins], ["a question", "/explain?read=1&tool=k8s_delete", admins], ["a draft", "/replay", admins],
    ["documents", "/memory", admins], ["missing-right", "", admins, true],
  ] });
  await owner.close();
  wiki.stop();
});

await step("ten thousand waiting runs cost a page what ten do", async () => {
  const some = Number(process.env.WAITING_RUNS ?? 10000);
  const agents = await Promise.all(moreTokens().map((token) => agent(["memory"], token)));
  const cookie = (await people.cookies()).map((one) => `${one.name}=${one.value}`).join("; ");
  // Beside each look at the inbox one at a page that shows no run: what that takes longer is the machine's doing.
  const time = async () => {
    const taken = { [inbox]: [], [`${inbox}/mine`]: [] };
    for (let tries = 0; tries < 25; tries += 1) {
      for (const address of Object.keys(taken)) {
        const began = performance.now();
        const answer = await fetch(address, { headers: { Cookie: cookie } });
        await answer.text();
        expect(answer.status === 200, `${address} answers ${answer.status}`);
        taken[address].push(performance.now() - began);
        await new Promise((done) => setTimeout(done, 30));
      }
    }
    const [page, other] = Object.values(taken).map((all) => all.sort((a, b) => a - b)[Math.floor(all.length / 2)]);
    return { page, other };
  };
  const ask = (number, at = 0) => agents[at].ask("memory_remember", { path: `tenant/runbooks/many-${number}`, type: "note", content: "x", evidence: "y" });
  // A full page before, so that both draw the same number of rows.
  for (let number = 0; number < 30; number += 1) await ask(`first-${number}`);
  const few = await time();
  for (let number = 0; number < some; number += 10) {
    await Promise.all(Array.from({ length: 10 }, (_, at) => ask(number + at, 1 + at)));
  }
  const many = await time();
  await page.goto(inbox);
  const count = Number(await page.locator("#waiting-count").getAttribute("data-count"));
  expect(count >= some, `${count} are counted`);
  const slower = Math.max(1, many.other / few.other);
  console.log(`   the inbox takes ${few.page.toFixed(1)} ms with a few and ${many.page.toFixed(1)} ms with ${count}; a page without runs ${few.other.toFixed(1)} and ${many.other.toFixed(1)} ms`);
  expect(many.page <= 1.5 * slower * few.page + 1, "more waiting runs cost more");
  await picture(page, "inbox-many");
});

findings.push(...violations.map((violation) => `the policy was violated: ${violation}`));
await browser.close();
for (const finding of findings) console.log(`WRONG ${finding}`);
if (findings.length > 0) process.exit(1);
console.log("the console stands");
