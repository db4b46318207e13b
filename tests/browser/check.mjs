// Opens every page of a folder in Chromium and looks at it as a reader would.
// Usage: node check.mjs FOLDER   (pages, expected.json; screenshots are written to FOLDER/shots)
import {mkdirSync, readFileSync, readdirSync} from "node:fs";
import {createRequire} from "node:module";
import path from "node:path";
import {pathToFileURL} from "node:url";
import {chromium} from "playwright-core";

const folder = path.resolve(process.argv[2]);
const shots = path.join(folder, "shots");
mkdirSync(shots, {recursive: true});
const pages = readdirSync(folder).filter((name) => name.endsWith(".html")).sort();
const expected = JSON.parse(readFileSync(path.join(folder, "expected.json"), "utf8"));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const failures = [];
let checks = 0;
function check(condition, text) {
  checks += 1;
  if (!condition) {
    failures.push(text);
    console.error(`FAILED: ${text}`);
  }
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  headless: true,
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--force-color-profile=srgb",
  ],
});

async function open(name, options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const url = pathToFileURL(path.join(folder, name)).href;
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) {
      check(false, `${name}: console ${message.type()}: ${message.text()}`);
    }
  });
  page.on("pageerror", (error) => check(false, `${name}: ${error}`));
  page.on("request", (request) => {
    const local = request.url() === url || request.url().startsWith("data:");
    check(local, `${name}: request to ${request.url()}`);
  });
  page.on("dialog", (dialog) => {
    check(false, `${name}: dialog ${dialog.message()}`);
    dialog.dismiss();
  });
  await page.goto(url);
  return {context, page};
}

// What a reader would call cut off: text beyond the window's or its own picture's edge, or hidden
// by its box. Tables in a scroll region may be wider than the window.
function cutOff() {
  const found = [];
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) {
    found.push(`the page is ${document.documentElement.scrollWidth} wide in ${width}`);
  }
  for (const element of document.querySelectorAll("body *")) {
    const scrolls = getComputedStyle(element.closest(".scroll") ?? element).overflowX === "auto";
    if (scrolls && element.closest(".scroll:has(.matrix)")) continue;
    if (element.closest("[hidden], script, title, details:not([open]) > :not(summary)")) {
      continue;
    }
    const box = element.getBoundingClientRect();
    if (!box.width || getComputedStyle(element).clipPath !== "none") continue;
    if (element.closest(".systems thead")) continue;
    const svg = element.tagName === "text" ? element.closest("svg").getBoundingClientRect() : null;
    const left = svg ? svg.left - 3 : -1;
    const right = svg ? svg.right + 3 : width + 1;
    if (box.left < left || box.right > right) {
      found.push(`${element.tagName} "${element.textContent.trim().slice(0, 30)}" ${
        Math.round(box.left)}-${Math.round(box.right)} of ${Math.round(left)}-${Math.round(right)}`);
    }
    if (!svg && element.scrollWidth > element.clientWidth + 1 && element.clientWidth
        && getComputedStyle(element).overflowX !== "visible") {
      found.push(`${element.tagName}.${element.className} hides text`);
    }
  }
  return found.slice(0, 5);
}

// Labels of one picture that lie on each other.
function overlapping() {
  const found = [];
  for (const svg of document.querySelectorAll("svg.chart")) {
    const boxes = [...svg.querySelectorAll("text")].filter((text) => text.textContent)
      .map((text) => [text.textContent, text.getBoundingClientRect()])
      .filter(([, box]) => box.width);
    for (const [i, [one, a]] of boxes.entries()) {
      for (const [other, b] of boxes.slice(i + 1)) {
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > 2 && high > 5) found.push(`"${one}" on "${other}"`);
      }
    }
  }
  return found.slice(0, 5);
}

async function look(name) {
  for (const width of [1280, 400]) {
    for (const colorScheme of ["light", "dark"]) {
      const where = `${name} at ${width} px, ${colorScheme}`;
      const {context, page} = await open(name, {
        viewport: {width, height: 900}, colorScheme, deviceScaleFactor: 1,
      });
      for (const [what, look] of [["cut off", cutOff], ["overlaps", overlapping]]) {
        const found = await page.evaluate(look);
        check(found.length === 0, `${where}: ${what}: ${found.join("; ")}`);
      }
      const stem = `${path.parse(name).name}-${width}-${colorScheme}`;
      await page.screenshot({path: path.join(shots, `${stem}.png`), fullPage: true});
      await page.evaluate(() => {
        for (const part of document.querySelectorAll("details")) part.open = true;
      });
      const opened = await page.evaluate(cutOff);
      check(opened.length === 0, `${where}, all open: cut off: ${opened.join("; ")}`);
      await page.evaluate(axe);
      const {violations} = await page.evaluate(() => axe.run());
      const serious = violations.filter((v) => ["serious", "critical"].includes(v.impact));
      check(serious.length === 0, `${where}: axe: ${serious.map((v) =>
        `${v.id} (${v.nodes.length}): ${v.nodes[0].html.slice(0, 120)} ${
          v.nodes[0].failureSummary}`).join("\n")}`);
      await context.close();
    }
  }
}

async function play(name, wanted) {
  const {context, page} = await open(name, {viewport: {width: 1280, height: 900}});
  const ground = page.locator(".playground").first();
  const verdict = ground.locator(".live-verdict .pill");
  const seen = new Set();
  for (const {predictor, share, tau, gate, nulls, score, reason} of wanted) {
    await ground.locator(`fieldset label:nth-of-type(${predictor + 1})`).click();
    await ground.locator(".share").fill(String(share));
    await ground.locator(".threshold").fill(String(tau));
    const shown = (await verdict.textContent()).slice(2);
    seen.add(shown);
    const where = `${name}: predictor ${predictor}, share ${share}, tau ${tau}`;
    check(shown === gate, `${where}: shows ${shown}, the gate says ${gate}`);
    const marks = (await ground.locator(".null-verdict").allTextContents()).map((t) => t.slice(2));
    check(marks.join() === nulls.join(), `${where}: nulls ${marks}, the gate says ${nulls}`);
    const why = (await ground.locator(".why").textContent()).toLowerCase();
    // the report alone adds how many queries would decide
    check(`${reason.toLowerCase()};`.startsWith(`${why.slice(0, -1)};`), `${where}: says "${why}" and not "${reason}"`);
    const bar = ground.locator(".bar").first();
    const height = Number(await bar.getAttribute("height"));
    const {top, axis} = JSON.parse(await ground.locator(".data").textContent());
    const drawn = height / (axis[1] - axis[0]) * top;
    check(Math.abs(drawn - score) < 0.01, `${where}: the bar shows ${drawn}, not ${score}`);
    const cell = ground.locator(".map .here");
    check(await cell.count() === (predictor ? 1 : 4), `${where}: no cell is marked`);
    check(await cell.first().getAttribute("title") === gate, `${where}: the table differs`);
  }
  check(seen.size === 3, `${name}: only ${[...seen]} were ever shown`);
  await ground.locator(".share").focus();
  const before = await ground.locator(".share-out").textContent();
  await page.keyboard.press("ArrowLeft");
  check(await ground.locator(".share-out").textContent() !== before, `${name}: keys do nothing`);
  await ground.screenshot({path: path.join(shots, `${path.parse(name).name}-played.png`)});
  await context.close();
}

async function withoutScript(name) {
  const {context, page} = await open(name, {javaScriptEnabled: false});
  check(await page.locator("h1").isVisible(), `${name} without JavaScript: no verdict`);
  check(await page.locator("article.panel .chart").first().isVisible(), `${name}: no picture`);
  for (const part of await page.locator(".controls, .live").all()) {
    check(!(await part.isVisible()), `${name}: dead controls are shown without JavaScript`);
  }
  for (const part of await page.locator(".map").all()) {
    check(await part.isVisible(), `${name}: no table of mixtures without JavaScript`);
  }
  await context.close();
}

async function print(name) {
  // an A4 page between margins of 1 cm
  const {context, page} = await open(name, {
    colorScheme: "dark", viewport: {width: 718, height: 1000},
  });
  await page.emulateMedia({media: "print", colorScheme: "dark"});
  const figures = page.locator("table.figures").first();
  check(await figures.isVisible(), `${name}: folded parts are not printed`);
  const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  check(ground === "rgb(255, 255, 255)", `${name}: prints on ${ground}`);
  const found = await page.evaluate(cutOff);
  check(found.length === 0, `${name}, printed: cut off: ${found.join("; ")}`);
  await page.pdf({path: path.join(shots, `${path.parse(name).name}.pdf`), format: "A4"});
  await context.close();
}

async function hostile(name) {
  const {context, page} = await open(name, {});
  check(await page.evaluate(() => globalThis.hacked === undefined), `${name}: a script ran`);
  const strangers = await page.evaluate(() => document.querySelectorAll("script").length
    - document.querySelectorAll("script.data").length);
  check(strangers === 1, `${name}: ${strangers} scripts`);
  check(await page.locator("b.injected, img, iframe").count() === 0, `${name}: injected elements`);
  await context.close();
}

try {
  for (const name of pages) {
    await look(name);
    await withoutScript(name);
    await print(name);
    await hostile(name);
    if (expected[name]) await play(name, expected[name]);
  }
} finally {
  await browser.close();
}
console.log(`${pages.length} pages, ${checks} checks, ${failures.length} failures; ${shots}`);
process.exit(failures.length || !pages.length || !Object.keys(expected).length ? 1 : 0);
