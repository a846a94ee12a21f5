// Opens archived pages in a real browser, as pywb replays them.
//
// node replay.mjs BASE PAGES
// BASE is the URL of a collection, PAGES a JSON file: a list of [date, url, is_styled].
// AROSE_PLAYWRIGHT is the module playwright-core, AROSE_CHROMIUM the browser. Prints one line of
// JSON: the number of pages shown, the number of these with a style sheet, and the errors.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const [base, file] = process.argv.slice(2);
const origin = new URL(base).origin;
const { chromium } = createRequire(import.meta.url)(process.env.AROSE_PLAYWRIGHT);
const browser = await chromium.launch({
  executablePath: process.env.AROSE_CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
});
const problems = [];
let shown = 0;
let styled = 0;
const pages = JSON.parse(readFileSync(file, "utf8"));

// Takes pages until none is left. Several tabs run this, since the browser mostly waits for pywb.
async function replay() {
  const page = await browser.newPage();
  page.setDefaultTimeout(60000);
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !url.startsWith("data:")) problems.push(`request to ${url}`);
  });
  while (pages.length > 0) {
    const [date, url, isStyled] = pages.shift();
    const response = await page.goto(`${base}/${date}mp_/${url}`, { waitUntil: "load" });
    const text = (await page.innerText("body")).trim();
    if (response.status() !== 200 || text === "") {
      problems.push(`${url}: status ${response.status()}, ${text.length} characters`);
      continue;
    }
    shown += 1;
    const rules = await page.evaluate(() =>
      [...document.styleSheets].map((sheet) => {
        try { return sheet.cssRules.length; } catch { return -1; }
      }).reduce((sum, n) => sum + n, 0));
    if (rules > 0) styled += 1;
    else if (isStyled) problems.push(`${url}: no style (${rules})`);
  }
}

try {
  await Promise.all(Array.from({ length: 4 }, replay));
} finally {
  await browser.close();
}
console.log(JSON.stringify({ shown, styled, problems: problems.slice(0, 20) }));
