// Visits every page with a real browser, as a person would: with mouse, keyboard and reload.
//
// node browser.mjs ADDRESS DIRECTORY CRAWL [SCREENSHOTS]
// ADDRESS serves a run in DIRECTORY, CRAWL serves a directory of archives. A run of `arose passages`
// is beside DIRECTORY, in `passages`.
// AROSE_PLAYWRIGHT is the module playwright-core, AROSE_CHROMIUM the browser.
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import assert from "node:assert/strict";

const [address, folder, crawl, screenshots] = process.argv.slice(2);
const { chromium } = createRequire(import.meta.url)(process.env.AROSE_PLAYWRIGHT);
const browser = await chromium.launch({
  executablePath: process.env.AROSE_CHROMIUM || "/usr/bin/chromium",
  headless: true,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

// The console must be empty, and no other server may be contacted.
const complaints = [];
function listen(page) {
  page.on("console", (message) => complaints.push(`console: ${message.text()} at ${page.url()}`));
  page.on("pageerror", (error) => complaints.push(`error: ${error} at ${page.url()}`));
  page.on("request", (request) => {
    const known = [address, crawl].some((own) => request.url().startsWith(own));
    if (!known) complaints.push(`request to ${request.url()}`);
  });
}

const long = "/pair?a=17&b=18";
const dense = "/pair?a=19&b=20";
const statistics = `${folder}/statistics.jsonl`;
const sample = (i, more = {}) => JSON.stringify({
  seconds: i, pages: 900 * i, queue: 40000 - 300 * i, hosts: 20 * i, bytes: 9e6 * i,
  exact_duplicates: 90 * i, near_duplicates: 40 * i, requests: 1000 * i,
  statuses: { 200: 850 * i, 301: 40 * i, 404: 9 * i, 503: i },
  slowest: [["slow.example.org", 4200], ["b.example.net", 1800]], ...more,
}) + "\n";

const page = await browser.newPage({ viewport: { width: 1200, height: 800 } });
page.setDefaultTimeout(60000);
listen(page);
try {
  // Search, expand, open a pair.
  await page.goto(address + "/");
  await page.fill("#q", "rose");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".results");
  assert.match(await page.textContent(".count"), /17 documents in 4 results/);
  // A site has two results on a page, and a link to the others.
  await page.click("text=more from example.org");
  await page.waitForURL(/site/);
  await page.click("text=and 11 near duplicates");
  await page.waitForSelector(".members");
  assert.ok(page.url().includes("expand="));
  await page.click(".members li a:has-text('compare')");
  await page.waitForSelector(".diff mark");
  assert.match(await page.textContent("h1"), /Two documents/);
  await page.click("summary");
  await page.waitForSelector(".text >> visible=true");

  // From pair to pair, and from difference to difference.
  await page.goto(address + "/pair?a=0&b=5");
  await page.click("text=Next pair");
  await page.waitForURL(/b=6/);
  if (long) {
    await page.goto(address + long);
    await page.waitForLoadState("load");
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    assert.match(await page.textContent("[data-hop-at]"), /difference 2 of /);
    assert.ok(await page.evaluate(() => document.querySelector("tr.here").id === "d2"));
    await page.keyboard.press("k");
    await page.keyboard.press("k");
    assert.match(await page.textContent("[data-hop-at]"), /difference (\d+) of \1$/);
  }
  // Differences near each other share a row of many screens, which also has steps.
  await page.goto(address + dense);
  await page.waitForLoadState("load");
  let below = 0;
  for (const number of [1, 2, 3]) {
    await page.keyboard.press("j");
    assert.match(await page.textContent("[data-hop-at]"), new RegExp(`difference ${number} of \\d\\d`));
    const [place, top] = await page.evaluate(() => [scrollY, document.querySelector("mark.here").getBoundingClientRect().top]);
    assert.ok(place > below && top >= 0 && top < 200, `${place} after ${below}, ${top}`);
    below = place;
  }

  // A result links to its document, counts narrow a search, and only kept documents are shown.
  await page.goto(address + "/?q=stranger");
  await page.click(".results h2 a");
  await page.waitForURL(/\/document\/15/);
  assert.match(await page.textContent(".text"), /only one rose of its kind/);
  await page.goto(address + "/?q=rose");
  await page.click(".facets a:has-text('example.net')");
  await page.waitForURL(/site/);
  assert.match(await page.textContent(".count"), /1 document/);
  await page.goto(address + "/?q=rose&all=1");
  await page.check("input[name=kept]");
  await page.click("button:has-text('Search')");
  await page.waitForURL(/kept=1/);
  assert.match(await page.textContent(".count"), /4 documents/);

  // Clusters, by similarity, and one of them.
  await page.goto(address + "/clusters");
  await page.selectOption("select[name=sort]", "lowest");
  await page.click("button:has-text('Show')");
  await page.waitForURL(/sort=lowest/);
  await page.click("tbody a");
  await page.waitForSelector(".members-table");

  // Rate ten pairs by keyboard, undo one, and rate it again.
  await page.goto(address + "/rate");
  await page.keyboard.type("Anna");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#verdict");
  await page.waitForLoadState("load");
  const before = await rated();
  for (const [i, key] of [..."yynuyynyyu"].entries()) await press(key, i + 1);
  await press("z", 9);
  await press("u", 10);
  await page.reload();
  assert.equal(await page.evaluate(() => document.querySelector("progress")?.value), 10);
  assert.equal(await rated(), before + 10);

  // An open table changes when another rater rates.
  await page.goto(address + "/ratings");
  assert.match(await page.textContent("h1"), /10 pairs rated/);
  const other = await browser.newPage();
  listen(other);
  await other.goto(address + "/rate?rater=Bob", { waitUntil: "load" });
  await other.keyboard.press("y");
  await other.waitForFunction(() => document.querySelector("progress")?.value === 1);
  await other.close();
  await page.waitForSelector("text=Agreement");

  // A crawl that continues.
  writeFileSync(statistics, [0, 1, 2, 3].map((i) => sample(i)).join(""));
  await page.goto(address + "/crawl");
  assert.match(await page.textContent(".figures"), /2,700/);
  appendFileSync(statistics, sample(4));
  await page.waitForFunction(() => document.querySelector(".figures").textContent.includes("3,600"));
  appendFileSync(statistics, sample(60, { is_done: true }));
  await page.waitForSelector("text=finished after 60 s");

  // The stored page of a crawl is shown, and can neither run scripts nor send requests. The browser
  // logs blocked requests in the console.
  const visitor = await browser.newPage({ viewport: { width: 1200, height: 800 } });
  const requests = [];
  visitor.on("requestfinished", (request) => requests.push(request.url()));
  visitor.on("requestfailed", (request) => {
    if (request.failure().errorText !== "csp") requests.push(request.url());
  });
  visitor.on("dialog", (dialog) => complaints.push(`dialog: ${dialog.message()}`));
  await visitor.goto(crawl + "/document/0");
  await visitor.locator("iframe.stored").scrollIntoViewIfNeeded();
  const stored = visitor.frameLocator("iframe.stored");
  await stored.locator("p").waitFor();
  assert.match(await stored.locator("p").textContent(), /A page about rose/);
  assert.deepEqual(requests.filter((url) => !url.startsWith(crawl)), []);
  assert.equal(await visitor.locator("header nav a").count(), 1);
  await visitor.close();

  // Without scripts the same pages work, including rating.
  const plain = await browser.newContext({ javaScriptEnabled: false });
  const still = await plain.newPage();
  listen(still);
  await still.goto(address + "/rate?rater=Carl");
  await still.click("button[value=correct]");
  await still.waitForSelector("text=1 of ");
  await plain.close();
  await measure();
  if (screenshots) await photograph();
} finally {
  await browser.close();
}
assert.deepEqual(complaints, []);
console.log("all pages visited, nothing to complain about");

// Presses a key and waits for the page on which `n` pairs are rated, including its script.
async function press(key, n) {
  await page.keyboard.press(key);
  await page.waitForFunction((n) => document.querySelector("progress")?.value === n, n);
  await page.waitForLoadState("load");
}

async function rated() {
  const answer = await (await fetch(address + "/api/ratings")).json();
  return answer.all.pairs;
}

// All pages by name.
function all() {
  const pages = { start: "/", search: "/?q=rose&expand=0", fault: "/?q=%22rose", clusters: "/clusters", cluster: "/cluster/0",
    pair: "/pair?a=0&b=1", long, dense, document: "/document/1", facets: "/?q=rose", estimates: "/estimates", begin: "/rate", rate: "/rate?rater=Anna", ratings: "/ratings", crawl: "/crawl", missing: "/nothing" };
  const own = Object.entries(pages).map(([name, path]) => [name, address + path]);
  const reports = [["report", `file://${folder}/report.html`], ["passages", `file://${folder}/../passages/report.html`]];
  return [...own, ...reports, ["stored", crawl + "/document/0"], ["archives", crawl + "/?q=page"]];
}

// On a phone nothing is clipped, and nothing has to be scrolled sideways.
async function measure() {
  const context = await browser.newContext({ viewport: { width: 360, height: 700 } });
  const visitor = await context.newPage();
  for (const [name, url] of all()) {
    await visitor.goto(url);
    for (const part of await visitor.evaluate(cut)) complaints.push(`${name}: ${part} is cut at 360 pixels`);
  }
  await context.close();
}

// The elements that extend beyond the window, or contain more than they show.
function cut() {
  const looks = (element) => getComputedStyle(element);
  // Elements for screen readers only.
  const isUnseen = (element) => element && (looks(element).clipPath !== "none" || isUnseen(element.parentElement));
  const isCut = (element) => {
    const { left, right, width, height } = element.getBoundingClientRect();
    const isWider = looks(element).overflowX !== "visible" && element.scrollWidth > element.clientWidth + 1;
    return width > 0 && height > 0 && (isWider || left < -1 || right > innerWidth + 1);
  };
  const elements = [document.documentElement, ...document.querySelectorAll("body *")];
  const found = elements.filter((element) => !element.closest("svg, select, input") && isCut(element) && !isUnseen(element));
  return found.map((element) => `${element.localName}.${element.className}`);
}

async function photograph() {
  mkdirSync(screenshots, { recursive: true });
  const looks = { wide: { width: 1280, height: 800 }, narrow: { width: 360, height: 700 } };
  for (const [look, viewport] of Object.entries(looks)) {
    for (const colorScheme of ["light", "dark"]) {
      const context = await browser.newContext({ viewport, colorScheme });
      const photographer = await context.newPage();
      for (const [name, url] of all()) {
        await photographer.goto(url);
        const width = await photographer.evaluate(() => document.documentElement.scrollWidth);
        if (width > viewport.width) complaints.push(`${name} is ${width} wide at ${viewport.width}`);
        await photographer.locator("iframe").scrollIntoViewIfNeeded({ timeout: 1 }).catch(() => {});
        await photographer.screenshot({ path: `${screenshots}/${name}-${look}-${colorScheme}.png`, fullPage: true });
      }
      await context.close();
    }
  }
}
