// Watches a crawl in a real browser: reports when its statistics have changed, and ends with it.
//
// node watch.mjs ADDRESS
// AROSE_PLAYWRIGHT is the module playwright-core, AROSE_CHROMIUM the browser.
import { createRequire } from "node:module";
import assert from "node:assert/strict";

const [address] = process.argv.slice(2);
const { chromium } = createRequire(import.meta.url)(process.env.AROSE_PLAYWRIGHT);
const browser = await chromium.launch({
  executablePath: process.env.AROSE_CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
});
const complaints = [];
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(60000);
  page.on("console", (message) => complaints.push(message.text()));
  page.on("request", (request) => {
    if (!request.url().startsWith(address)) complaints.push(`request to ${request.url()}`);
  });
  await page.goto(address + "/crawl");
  assert.match(await page.textContent("h1"), /running/);
  const before = await page.textContent(".figures");
  await page.waitForFunction((before) => document.querySelector(".figures").textContent !== before, before);
  console.log("changed");
  await page.waitForFunction(() => document.querySelector("h1").textContent.startsWith("Crawl, finished"));
} finally {
  await browser.close();
}
assert.deepEqual(complaints, []);
