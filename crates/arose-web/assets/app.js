// The three things that need a script: keys, steps between differences, and live figures.
"use strict";

// A key presses the button that names it, unless someone is typing.
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, select, textarea");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const button = document.querySelector(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
  if (button && !button.disabled) {
    event.preventDefault();
    button.click();
  }
});

// One rating a pair, however often a key is hit before the next page is there.
for (const form of document.querySelectorAll("form[method=post]")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
  });
}
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});

// Steps from one difference to the next, and says which one it is.
const hops = document.querySelector("[data-differences]");
if (hops) {
  const total = Number(hops.dataset.differences);
  const said = hops.querySelector("[data-hop-at]");
  let at = 0;
  for (const link of hops.querySelectorAll("[data-hop]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      document.getElementById(`d${at}`)?.classList.remove("here");
      const step = Number(link.dataset.hop);
      if (at) at = (at - 1 + step + total) % total + 1;
      else at = step > 0 ? 1 : total;
      const row = document.getElementById(`d${at}`);
      row?.classList.add("here");
      row?.scrollIntoView({ block: "start" });
      said.textContent = `difference ${at} of ${total}`;
    });
  }
}

// What is marked as live is fetched again and put in its own place.
async function renew(element) {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok) return element;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.getElementById(element.id);
  if (!fresh) return element;
  if (fresh.innerHTML !== element.innerHTML) element.replaceChildren(...fresh.childNodes);
  element.dataset.live = fresh.dataset.live || "";
  return element;
}

function watch(element) {
  const pause = Number(element.dataset.live);
  if (!pause) return;
  setTimeout(async () => {
    if (!document.hidden) await renew(element).catch(() => element);
    watch(element);
  }, pause);
}

document.querySelectorAll("[data-live]").forEach(watch);
