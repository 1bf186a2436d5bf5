// What holds on every screen, whoever sees it: accessible in light and dark, nothing wider than a phone, everything
// reachable by keyboard, readable without scripts, small, and nothing of strangers became a part of the page.
import { accessible, clean, context, expect, URL_ } from "./browser.mjs";

const base = `${URL_}/console`;
const KB = 1024;

// How much a first visit takes on the wire; what live.js reads again comes after the page is there.
const weigh = async (browser, cookies, path) => {
  const fresh = await context(browser);
  await fresh.addCookies(cookies);
  const page = await fresh.newPage();
  const session = await fresh.newCDPSession(page);
  await session.send("Network.enable");
  const kinds = new Map();
  const sizes = new Map();
  session.on("Network.responseReceived", ({ requestId, response, type }) => kinds.set(requestId, { url: response.url, type }));
  session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => sizes.set(requestId, encodedDataLength));
  await page.goto(`${base}${path}`, { waitUntil: "load" });
  await page.waitForTimeout(200);
  let [whole, files] = [0, 0];
  for (const [id, bytes] of sizes) {
    const { url = "", type } = kinds.get(id) ?? {};
    if (type === "Fetch") continue;
    whole += bytes;
    if (url.includes("/assets/")) files += bytes;
  }
  await fresh.close();
  return { whole, files };
};

// By Tab alone: the first stop is the way past the navigation, everything is reached once, and nothing holds the focus.
const byKeyboard = async (page, name) => {
  const wanted = await page.evaluate(() => {
    const all = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")];
    const shown = all.filter((one) => !one.disabled && one.checkVisibility({ visibilityProperty: true }));
    // Of radio buttons with one name the keyboard stops at one.
    const radios = new Set();
    return shown.filter((one) => one.type !== "radio" || (!radios.has(one.name) && radios.add(one.name))).length;
  });
  await page.evaluate(() => { document.activeElement?.blur(); globalThis.scrollTo(0, 0); });
  const seen = new Set();
  // A field for a date has several stops of its own.
  for (let tries = 0; tries < wanted + 30; tries += 1) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const one = document.activeElement;
      if (!one || one === document.body) return undefined;
      globalThis.stops ??= new Map();
      if (!globalThis.stops.has(one)) globalThis.stops.set(one, globalThis.stops.size);
      const outline = getComputedStyle(one);
      return { number: globalThis.stops.get(one), skip: one.classList.contains("skip"), seen: outline.outlineStyle !== "none" };
    });
    if (!at) break;
    if (seen.size === 0) expect(at.skip, `${name}: the first stop leads to the content`);
    expect(at.seen, `${name}: the focus can be seen`);
    if (seen.size > 1 && at.number === 0) break;
    seen.add(at.number);
  }
  expect(seen.size >= wanted, `${name}: ${seen.size} of ${wanted} parts are reached by keyboard`);
};

/** Looks at all of these screens: name, path, whose session sees it, and whether its picture is kept. */
export const everyScreen = async ({ browser, screens, picture }) => {
  let [heaviest, assets] = [{ whole: 0 }, 0];
  for (const [name, path, people, kept] of screens) {
    const cookies = await people.cookies();
    const visit = await context(browser);
    await visit.addCookies(cookies);
    const page = await visit.newPage();
    const answer = await page.goto(`${base}${path}`);
    expect(answer.status() < 500, `${name}: ${answer.status()}`);
    expect(await page.locator("h1").count() === 1, `${name}: one heading tells what it is`);
    await accessible(page, name);
    await clean(page, name);
    await byKeyboard(page, name);
    if (kept) await picture(page, name);
    await visit.close();
    const plain = await context(browser, { javaScriptEnabled: false });
    await plain.addCookies(cookies);
    const bare = await plain.newPage();
    await bare.goto(`${base}${path}`);
    expect(await bare.locator("h1").isVisible(), `${name} without scripts`);
    expect(await bare.locator("button:disabled").count() === 0, `${name} without scripts: every button works`);
    await plain.close();
    const weight = await weigh(browser, cookies, path);
    expect(weight.whole > 0 && weight.whole <= 40 * KB, `${name}: ${weight.whole} bytes on the wire`);
    expect(weight.files <= 25 * KB, `${name}: ${weight.files} bytes of scripts and styles`);
    if (weight.whole > heaviest.whole) heaviest = { name, ...weight };
    assets = Math.max(assets, weight.files);
  }
  console.log(`   ${screens.length} screens; the heaviest is ${heaviest.name} with ${heaviest.whole} bytes on the wire; scripts and styles ${assets}`);
};
