// Gives orders to a running crawl with a real browser: pause, resume, reload.
//
// node orders.mjs ADDRESS DIRECTORY [SCREENSHOTS]
// ADDRESS serves the crawl that runs in DIRECTORY.
// AROSE_PLAYWRIGHT is the module playwright-core, AROSE_CHROMIUM the browser.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import assert from "node:assert/strict";

const [address, folder, screenshots] = process.argv.slice(2);
const { chromium } = createRequire(import.meta.url)(process.env.AROSE_PLAYWRIGHT);
const browser = await chromium.launch({
  executablePath: process.env.AROSE_CHROMIUM || "/usr/bin/chromium",
  headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const page = await browser.newPage({ viewport: { width: 1200, height: 800 } });
page.setDefaultTimeout(60000);

// Number of pages fetched, as last reported by the crawl.
const fetched = () => {
  const lines = readFileSync(`${folder}/statistics.jsonl`, "utf8").trim().split("\n");
  return JSON.parse(lines.at(-1)).pages;
};
async function until(what, condition) {
  for (let i = 0; i < 300; i += 1) {
    if (await condition()) return;
    await sleep(200);
  }
  assert.fail(`never: ${what}`);
}
const heading = (pattern) => page.waitForFunction(
  (source) => new RegExp(source).test(document.querySelector("h1").textContent), pattern);
async function photograph(name) {
  if (!screenshots) return;
  mkdirSync(screenshots, { recursive: true });
  await page.screenshot({ path: `${screenshots}/${name}.png`, fullPage: true });
}

try {
  await page.goto(address + "/crawl");
  await heading("running for");
  await photograph("crawl-running");

  // Statistics are refreshed, and a button keeps the focus meanwhile.
  await page.focus('button:text-is("Pause")');
  const before = await page.textContent(".figures");
  await page.waitForFunction((old) => document.querySelector(".figures").textContent !== old, before);
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Pause");

  // A button that is held for longer than the refresh interval still works.
  const box = await page.locator('button:text-is("Pause")').boundingBox();
  await page.mouse.move(box.x + 5, box.y + 5);
  await page.mouse.down();
  const during = await page.textContent(".figures");
  await page.waitForFunction((old) => document.querySelector(".figures").textContent !== old, during);
  await page.mouse.up();
  await heading("paused after");
  assert.ok(existsSync(`${folder}/pause`));
  await photograph("crawl-paused");
  // Nothing is fetched any more, except open requests.
  let last = -1;
  await until("the crawl pauses", async () => {
    const now = fetched();
    const same = now === last;
    last = now;
    await sleep(3000);
    return same && fetched() === now;
  });

  await page.click('button:text-is("Resume")');
  await heading("running for");
  await until("the crawl goes on", () => fetched() > last);

  // New settings are applied; invalid settings are rejected, and the crawl continues.
  await page.click('button:text-is("Reload settings")');
  await page.waitForSelector("text=The crawl has applied the settings");
  await photograph("crawl-reloaded");
  const settings = readFileSync(`${folder}/settings.toml`, "utf8");
  writeFileSync(`${folder}/settings.toml`, "[polite]\ndelay = \"long\"\n");
  await page.click('button:text-is("Reload settings")');
  await page.waitForSelector("text=Order failed");
  await photograph("crawl-not-reloaded");
  writeFileSync(`${folder}/settings.toml`, settings);
  const then = fetched();
  await until("the crawl goes on", () => fetched() > then);
} finally {
  await browser.close();
}
