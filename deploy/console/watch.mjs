// The screens to watch and stop by: audit log, sessions, usage, operations, catalog.
import { accessible, agent, api, clean, context, expect, ownToken, URL_ } from "./browser.mjs";

const base = `${URL_}/console`;
const HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>";

// Menus are opened by a click and closed by the next one.
const byMenu = async (page, name) => {
  await page.locator(".menu summary", { hasText: "Watch" }).click();
  await page.getByRole("navigation", { name: "Screens" }).getByRole("link", { name, exact: true }).click();
  await page.getByRole("heading", { level: 1, name }).waitFor();
};

/** Signs the operator in and looks at every screen while there is nothing on it. */
export const begin = async ({ browser, link, step, picture }) => {
  const people = await context(browser);
  const page = await people.newPage();
  await step("screens that have nothing to show say so", async () => {
    await page.goto(link);
    await page.waitForURL(base);
    for (const [name, path, text] of [
      ["audit-empty", "/audit?tool=no_such_tool", "No entry fits."],
      ["sessions-empty", "/sessions", "No session is open."],
      ["usage-empty", "/usage", "Nothing was used in this time."],
      ["operations-empty", "/operations", "No switch is set."],
      ["catalog-none", "/catalog/no_such_tool", "has no tool of this name"],
    ]) {
      await page.goto(`${base}${path}`);
      await page.getByText(text).first().waitFor();
      await accessible(page, name);
      await picture(page, name);
    }
  });
  return { people, page };
};

/** Walks through every screen by mouse, by keyboard and without JavaScript. */
export const watch = async ({ browser, people, page, step, picture }) => {
  const seen = async (name) => {
    await accessible(page, name);
    await picture(page, name);
  };
  const someone = await agent(["k8s"]);
  await someone.call("k8s_get", { kind: "Pod" });

  await step("audit log by mouse: search, one entry, verify, export", async () => {
    await page.goto(base);
    await byMenu(page, "Audit log");
    expect(await page.locator("#entries tbody tr").count() > 5, "there are entries");
    await seen("audit");
    await page.locator("#filter-tool").fill("k8s_get");
    await page.locator("#filters button").click();
    await page.waitForURL(/tool=k8s_get/);
    expect(!page.url().includes("principal="), "an empty field stays out of the address");
    await page.locator("#entries tbody tr a").last().click();
    await page.getByRole("heading", { name: "As it is stored" }).waitFor();
    expect((await page.locator("main").innerText()).includes("Pod"), "its arguments are shown");
    await seen("audit-entry");
    await page.goBack();
    await page.waitForURL(/tool=k8s_get/);
    expect(await page.locator("#filter-tool").inputValue() === "k8s_get", "going back leads to the same search");
    await page.locator("#verify button").click();
    await page.getByText("The audit log is intact").waitFor();
    await seen("audit-verified");
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Export everything" }).click()]);
    const chunks = [];
    for await (const chunk of await download.createReadStream()) chunks.push(chunk);
    const lines = Buffer.concat(chunks).toString().trim().split("\n");
    expect(lines.length > 10 && lines.every((line) => JSON.parse(line)), `an export of ${lines.length} lines`);
  });

  await step("sessions: seen with their cost, ended by a form", async () => {
    const { id } = await api(ownToken, "/sessions", { mode: "read" }, { "User-Agent": HOSTILE });
    await byMenu(page, "Sessions");
    const row = page.locator(`#${id}`);
    expect(/\d+ tokens in each list/.test(await row.innerText()), "what it costs");
    expect((await row.innerText()).includes(HOSTILE), "the program's name is shown as it was written");
    await seen("sessions");
    await row.getByRole("button").click();
    await page.getByText("The session is ended").waitFor();
    expect(await page.locator(`#${id}`).count() === 0, "it is gone");
  });

  await step("catalog: toolsets, tools, arguments, and why not", async () => {
    await byMenu(page, "Catalog");
    await seen("catalog");
    await page.locator("#toolsets").getByRole("link", { name: "k8s" }).click();
    await page.locator("#tools").waitFor();
    await seen("catalog-tools");
    await page.locator("#tools").getByRole("link", { name: "k8s_scale" }).click();
    await page.locator("#arguments").waitFor();
    expect((await page.locator("#why").innerText()).includes("tools:write is missing"), "people call no tools");
    await page.locator("#who").selectOption("writer");
    await page.waitForURL(/for=writer/);
    expect((await page.locator("#why").innerText()).includes("Yes."), "an agent may");
    await seen("catalog-tool");
    await page.goto(`${base}/catalog`);
    await page.locator("#tool").fill("k8s_skale");
    await page.locator("#find-tool button").click();
    await page.getByRole("link", { name: "k8s_scale" }).click();
    await page.locator("#arguments").waitFor();
  });

  await step("operations: readiness, targets, and a switch that holds", async () => {
    await byMenu(page, "Operations");
    expect((await page.locator("#readiness").innerText()).includes("ready"), "readiness");
    expect((await page.locator("#targets").innerText()).includes("cluster/"), "targets");
    await page.locator("#switch-on").fill("tenant");
    await page.locator("#switch-mode").selectOption("stop");
    await page.locator("#switch-reason").fill("not meant");
    await page.locator("#set-switch button").click();
    await page.getByText("the typed name is not that of the tenant").waitFor();
    expect(await page.locator("#switch-reason").inputValue() === "not meant", "what was typed is kept");
    await page.locator("#switch-on").fill("toolset:k8s");
    await page.locator("#switch-mode").selectOption("read-only");
    await page.locator("#switch-reason").fill("the cluster is being repaired");
    await page.locator("#set-switch button").click();
    await page.getByText("The switch is set.").waitFor();
    await page.getByText("the cluster is being repaired").waitFor();
    await seen("operations");
    const refused = await someone.call("k8s_scale", { kind: "Deployment", name: "cart-worker", replicas: 2 });
    expect(refused.error?.code === "switched_read_only" || JSON.stringify(refused).includes("switched_read_only"), `it holds: ${JSON.stringify(refused).slice(0, 300)}`);
    await page.locator(".switch button").click();
    await page.getByText("The switch is lifted.").waitFor();
  });

  await step("usage: charts, and their figures in a table", async () => {
    await page.waitForTimeout(100);
    await byMenu(page, "Usage");
    expect(await page.locator(".chart svg rect").count() > 0, "bars");
    await page.locator(".figures summary").click();
    await page.getByRole("region", { name: "Figures by day" }).waitFor();
    await seen("usage");
    await page.locator("#filter-by").selectOption("toolset");
    await page.waitForURL(/by=toolset/);
  });

  await step("screens to watch by keyboard only", async () => {
    await page.goto(base);
    await page.locator(".menu summary").first().focus();
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.waitForURL(`${base}/audit`);
    await page.locator("#filter-code").focus();
    await page.keyboard.type("ok");
    await page.keyboard.press("Enter");
    await page.waitForURL(/code=ok/);
  });

  await step("screens to watch without JavaScript", async () => {
    const plain = await context(browser, { javaScriptEnabled: false });
    await plain.addCookies(await people.cookies());
    const bare = await plain.newPage();
    await bare.goto(base);
    await byMenu(bare, "Audit log");
    await bare.locator("#filter-tool").fill("k8s_get");
    await bare.locator("#filters button").click();
    expect(await bare.locator("#entries tbody tr").count() > 0, "a search");
    await bare.locator("#verify button").click();
    await bare.getByText("The audit log is intact").waitFor();
    await byMenu(bare, "Operations");
    await bare.locator("#switch-on").fill("tool:k8s_exec");
    await bare.locator("#switch-mode").selectOption("stop");
    await bare.locator("#switch-reason").fill("without scripts");
    await bare.locator("#set-switch button").click();
    await bare.getByText("without scripts").waitFor();
    await bare.locator(".switch button").click();
    await bare.getByText("The switch is lifted.").waitFor();
    await byMenu(bare, "Usage");
    await bare.locator("#filter-by").selectOption("principal");
    await bare.locator("#filters button").click();
    await bare.getByRole("heading", { name: "By who asked" }).waitFor();
    await byMenu(bare, "Catalog");
    await bare.locator("#toolsets").getByRole("link", { name: "memory" }).click();
    await bare.locator("#tools").waitFor();
    await byMenu(bare, "Sessions");
    const rows = await bare.locator("#sessions .run").count();
    await api(ownToken, "/sessions", { mode: "read" }, { "User-Agent": "to-be-ended/1" });
    await bare.reload();
    await bare.locator("#sessions .run", { hasText: "to-be-ended/1" }).getByRole("button").click();
    await bare.getByText("The session is ended").waitFor();
    expect(await bare.locator("#sessions .run").count() === rows, "it is gone");
    await plain.close();
  });

  await step("hostile text on the screens to watch is visible, and nothing of it runs", async () => {
    await api(ownToken, "/sessions", { mode: "read" }, { "User-Agent": HOSTILE });
    const text = encodeURIComponent(`${HOSTILE}\u202e\u200b`);
    for (const path of ["/sessions", "/audit", `/audit?text=${text}&tool=${text}`, `/catalog/${text}`, "/usage?by=session"]) {
      await page.goto(`${base}${path}`);
      await clean(page, path);
    }
  });
};
