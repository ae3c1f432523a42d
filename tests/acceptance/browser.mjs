// Drives the pages in a real browser: node browser.mjs SCENARIO ADDRESS [ARGUMENT...]
// KNOWLEDGE_PLAYWRIGHT_CORE: the folder of the npm package playwright-core, with axe-core beside it for `axe`.
// KNOWLEDGE_CHROMIUM: the browser. Ends with 0, or with 1 and what was not as it should be on standard error.
import { strict as assert } from "node:assert";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const folder = process.env.KNOWLEDGE_PLAYWRIGHT_CORE;
const { chromium } = createRequire(import.meta.url)(folder);
const axeFile = join(dirname(folder), "axe-core", "axe.min.js");
const [, , scenario, address, ...given] = process.argv;
const WAIT_MS = 60_000;

const browser = await chromium.launch({ executablePath: process.env.KNOWLEDGE_CHROMIUM, args: ["--no-sandbox"] });

async function opened(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 820 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT_MS);
  page.faults = [];
  page.on("pageerror", (error) => page.faults.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => (page.agrees ? dialog.accept() : (page.faults.push("a dialog"), dialog.dismiss())));
  const isOfPage = (text) => text.startsWith("Failed to load resource"); // told of by its answer
  page.on("console", (message) => message.type() === "error" && !isOfPage(message.text()) && page.faults.push(message.text()));
  page.on("response", (answer) => {
    const isBad = answer.status() >= 400 && !answer.request().isNavigationRequest();
    if (isBad) page.faults.push(`${answer.status()} ${answer.url()}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(address)) page.faults.push(`asked for ${request.url()}`);
  });
  return page;
}

function isWell(page) {
  assert.deepEqual(page.faults, []);
}

const scenarios = {
  // the keyboard alone: / to the box, Enter to ask, j and k from hit to hit, Enter to open one
  async search(query) {
    const page = await opened();
    await page.goto(`${address}/`);
    await page.keyboard.press("Escape");
    assert.notEqual(await page.evaluate(() => document.activeElement.id), "q");
    await page.keyboard.press("/");
    assert.equal(await page.evaluate(() => document.activeElement.id), "q");
    await page.keyboard.type(query);
    await page.keyboard.press("Enter");
    await page.waitForSelector(".hits .hit");
    assert.ok((await page.locator(".hits mark").count()) > 0);
    const focused = () => page.evaluate(() => document.activeElement.textContent);
    const titles = await page.locator(".hits h2 a").allTextContents();
    await page.keyboard.press("j");
    assert.equal(await focused(), titles[0]);
    await page.keyboard.press("ArrowDown");
    assert.equal(await focused(), titles[1]);
    await page.keyboard.press("k");
    assert.equal(await focused(), titles[0]);
    await page.keyboard.press("Enter");
    await page.waitForSelector(".passage.cited");
    assert.ok(await page.locator(".passage.cited").isVisible());
    isWell(page);
  },

  async withoutScript(query) {
    const page = await opened({ javaScriptEnabled: false });
    await page.goto(`${address}/`);
    await page.locator("#q").fill(query);
    await page.locator("form.search button").click();
    await page.locator(".hits h2 a").first().click();
    assert.equal(await page.locator(".passage.cited").count(), 1);
    await page.goto(`${address}/operations`);
    assert.ok((await page.locator("#runs tbody tr").count()) > 0);
    assert.equal(await page.locator("button[data-post]:visible").count(), 0);
    isWell(page);
  },

  // nothing is wider than a small telephone
  async narrow(...paths) {
    const page = await opened({ viewport: { width: 360, height: 740 } });
    for (const path of paths) {
      await page.goto(address + path);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360, path);
    }
    isWell(page);
  },

  // a run is begun on the page, stands still, goes on, and ends, without the page being loaded again
  async steer() {
    const page = await opened();
    page.agrees = true;
    await page.goto(`${address}/operations`);
    await page.waitForSelector("#live.on");
    await page.evaluate(() => (window.isTheSame = true));
    const before = await page.locator("#runs tbody tr").first().getAttribute("data-run");
    await page.locator("#index button[data-post='/v1/runs']").click();
    await page.waitForFunction((run) => document.querySelector("#runs tbody tr").dataset.run !== run, before);
    const run = await page.locator("#runs tbody tr").first().getAttribute("data-run");
    const row = `#runs tr[data-run="${run}"]`;
    await page.locator(`${row} button[data-post$="/pause"]`).click();
    await page.waitForSelector(`${row}[data-state="paused"]`);
    assert.match(await page.locator(`${row} .state`).textContent(), /^paused/);
    await page.locator(`${row} button[data-post$="/resume"]`).click();
    await page.waitForSelector(`${row}[data-state="done"]`);
    assert.match(await page.locator(`${row} .state`).textContent(), /^ended well/);
    assert.equal(await page.locator(`${row} button[data-post$="/pause"]`).count(), 0);
    assert.ok((await page.locator("#charts figure svg").count()) >= 2);
    assert.ok(await page.evaluate(() => window.isTheSame));
    isWell(page);
    console.log(run);
  },

  // the page of one run follows it to its end; it is ended with a question first
  async end() {
    const page = await opened();
    page.agrees = true;
    await page.goto(`${address}/operations`);
    await page.locator("#index button[data-post='/v1/runs']").click();
    await page.waitForSelector("#runs tbody tr button[data-post$='/cancel']");
    const run = await page.locator("#runs tbody tr").first().getAttribute("data-run");
    await page.goto(`${address}/operations/runs/${run}`);
    await page.locator("#run button[data-post$='/cancel']").click();
    await page.waitForSelector('#run[data-state="cancelled"], #run[data-state="done"]');
    isWell(page);
  },

  async hostile(...queries) {
    const page = await opened();
    for (const query of queries) {
      await page.goto(`${address}/?q=${query}&hits=20`);
      const links = await page.locator(".hits h2 a").evaluateAll((all) => all.map((link) => link.href));
      assert.equal(links.length, 20);
      for (const link of [...links, `${address}/match?q=${query}`]) {
        await page.goto(link, { waitUntil: "domcontentloaded" });
        assert.equal(await page.locator("main script, main img, main iframe, main style").count(), 0);
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), link);
      }
    }
    isWell(page);
  },

  // no serious fault, light and dark, wide and narrow
  async axe(...paths) {
    if (!existsSync(axeFile)) {
      console.log("no axe-core");
      return;
    }
    const found = [];
    for (const [width, colorScheme] of [[1280, "light"], [1280, "dark"], [360, "light"]]) {
      const page = await opened({ viewport: { width, height: 820 }, colorScheme, bypassCSP: true });
      for (const path of paths) {
        await page.goto(address + path);
        await page.evaluate(readFileSync(axeFile, "utf8"));
        await page.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
        const { violations } = await page.evaluate(() => axe.run());
        for (const one of violations.filter(({ impact }) => ["serious", "critical"].includes(impact))) {
          found.push(`${path} ${width} ${colorScheme}: ${one.id}: ${one.nodes.map((node) => node.html).join(" | ")}`);
        }
      }
    }
    assert.deepEqual(found, []);
  },

  // what the page costs: printed, never judged here
  async cost(...paths) {
    for (const path of paths) {
      const page = await opened();
      const bodies = [];
      page.on("response", (answer) => bodies.push(answer.url().endsWith("events") ? "" : answer.body().catch(() => "")));
      await page.goto(address + path, { waitUntil: "load" });
      await page.waitForTimeout(200);
      const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
      const bytes = (await Promise.all(bodies)).reduce((sum, body) => sum + body.length, 0);
      const shift = await page.evaluate(
        () =>
          new Promise((resolve) => {
            let sum = 0;
            new PerformanceObserver((list) => list.getEntries().forEach((one) => (sum += one.value))).observe({
              type: "layout-shift",
              buffered: true,
            });
            setTimeout(() => resolve(sum), 100);
          }),
      );
      console.log(`${path}: first contentful paint ${Math.round(paint)} ms, ${bytes} bytes, layout shift ${shift}`);
      await page.close();
    }
  },

  // for the documentation: FOLDER NAME=PATH...
  async pictures(into, ...named) {
    for (const [suffix, width, colorScheme] of [["", 1000, "light"], ["-dark", 1000, "dark"], ["-narrow", 360, "light"]]) {
      const page = await opened({ viewport: { width, height: width === 360 ? 640 : 680 }, colorScheme });
      for (const one of named) {
        const at = one.indexOf("=");
        await page.goto(address + one.slice(at + 1));
        await page.waitForTimeout(400);
        await page.screenshot({ path: join(into, `${one.slice(0, at)}${suffix}.png`) });
      }
      await page.close();
    }
  },
};

try {
  await scenarios[scenario](...given);
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await browser.close();
}
