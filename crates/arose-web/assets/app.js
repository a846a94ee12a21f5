// Keyboard shortcuts, steps between differences, and live statistics.
"use strict";

// A key presses the button with its label, unless the user is typing.
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, select, textarea");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const button = document.querySelector(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
  if (button && !button.disabled) {
    event.preventDefault();
    button.click();
  }
});

// One rating per pair, however often a key is pressed before the next page is loaded.
for (const form of document.querySelectorAll("form[method=post]")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
  });
}
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});

// Steps from one difference to the next, and shows its number. A step is a row; in a row that
// does not fit on the screen, each mark that is some way below the last step.
function steps() {
  const top = (element) => element.getBoundingClientRect().top;
  const rows = [...document.querySelectorAll(".diff tr[id]")];
  return rows.flatMap((row) => {
    if (row.offsetHeight < innerHeight) return [row];
    const marks = [...row.querySelectorAll("mark")].sort((a, b) => top(a) - top(b));
    const far = [];
    for (const mark of marks) if (!far.length || top(mark) > top(far.at(-1)) + innerHeight / 4) far.push(mark);
    return far;
  });
}

const hops = document.querySelector("[data-differences]");
if (hops) {
  const said = hops.querySelector("[data-hop-at]");
  let here = null;
  for (const link of hops.querySelectorAll("[data-hop]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const all = steps(), step = Number(link.dataset.hop);
      const from = here ? all.indexOf(here) : step > 0 ? -1 : 0;
      const at = (from + step + all.length) % all.length;
      here?.classList.remove("here");
      here = all[at];
      here.classList.add("here");
      here.scrollIntoView({ block: "start" });
      said.textContent = `difference ${at + 1} of ${all.length}`;
    });
  }
}

// Fetches live elements again and replaces only changed parts. Otherwise a button would lose the
// focus, and a slow click would be lost.
async function renew(element) {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok) return element;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.getElementById(element.id);
  if (!fresh) return element;
  const [old, now] = [[...element.children], [...fresh.children]];
  if (old.length !== now.length) element.replaceChildren(...fresh.childNodes);
  else old.forEach((part, at) => part.isEqualNode(now[at]) || part.replaceWith(now[at]));
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
