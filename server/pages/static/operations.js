"use strict";
// Operations: the server says when something has changed, the page fetches itself again and exchanges what differs.
// All words are the server's. Charts are drawn here, from the events of the last minutes.
(() => {
  const meta = (name) => document.querySelector(`meta[name="${name}"]`)?.content ?? "";
  const base = meta("base-path");
  const live = document.getElementById("live");
  const said = document.getElementById("said");
  const KEPT_MS = 10 * 60 * 1000;
  const POLL_MS = 5000;
  const REDRAWN_MS = 5000;
  const SAID_MS = 8000;
  const STAGES = { check: "To be read", write: "To be written", parked: "Set aside" };
  const seen = [];
  let isFetching = false;
  let isStale = false;
  let polling = 0;
  let hushing = 0;

  function showButtons(root) {
    for (const actions of root.querySelectorAll(".actions[hidden]")) actions.hidden = false;
  }

  function exchange(fresh) {
    const focused = document.activeElement?.id;
    for (const part of document.querySelectorAll("[data-live]")) {
      const other = fresh.getElementById(part.id);
      if (!other) continue;
      showButtons(other);
      if (other.innerHTML === part.innerHTML) continue;
      const open = [...part.querySelectorAll("details")].map((details) => details.open);
      part.replaceChildren(...document.importNode(other, true).childNodes);
      part.querySelectorAll("details").forEach((details, at) => (details.open = open[at] ?? details.open));
      for (const name of ["data-state", "data-run"]) {
        if (other.hasAttribute(name)) part.setAttribute(name, other.getAttribute(name));
      }
    }
    if (focused && document.activeElement?.id !== focused) document.getElementById(focused)?.focus();
  }

  async function refresh() {
    if (isFetching) {
      isStale = true;
      return;
    }
    isFetching = true;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", cache: "no-store", redirect: "error" });
      if (answer.ok) exchange(new DOMParser().parseFromString(await answer.text(), "text/html"));
      else if (answer.status === 401 || answer.status === 403) location.reload();
    } catch {
      tellLive("no connection", false);
    } finally {
      isFetching = false;
      if (isStale) {
        isStale = false;
        refresh();
      }
    }
  }

  function tellLive(words, isOn) {
    if (!live || (live.textContent === words && live.classList.contains("on") === isOn)) return;
    live.textContent = words;
    live.classList.toggle("on", isOn);
  }

  function poll() {
    if (polling) return;
    tellLive(`looked at every ${POLL_MS / 1000} seconds`, false);
    polling = setInterval(() => document.hidden || refresh(), POLL_MS);
  }

  function follow() {
    if (!window.EventSource) return poll();
    const run = document.querySelector("section[data-run]");
    const source = new EventSource(`${base}/v1/${run ? `runs/${run.dataset.run}/` : ""}events`);
    source.onopen = () => {
      clearInterval(polling);
      polling = 0;
      tellLive("live", true);
    };
    source.onmessage = (event) => {
      note(event.data);
      refresh();
    };
    source.addEventListener("problem", refresh);
    source.addEventListener("end", () => {
      source.close();
      tellLive("ended", false);
      refresh();
    });
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) poll();
      else tellLive("no connection; trying again", false);
    };
    addEventListener("pagehide", () => source.close());
  }

  function note(text) {
    let value;
    try {
      value = JSON.parse(text);
    } catch {
      return;
    }
    const queue = value.health?.queue;
    if (!queue) return;
    const now = Date.now();
    seen.push({ at: now, depths: { ...queue.jobs, ...(queue.parked ? { parked: queue.parked } : {}) } });
    while (seen.length && seen[0].at < now - KEPT_MS) seen.shift();
    draw();
  }

  setInterval(() => seen.length && !document.hidden && draw(), REDRAWN_MS);

  function draw() {
    const charts = document.getElementById("charts");
    if (!charts) return;
    const stages = [...new Set(seen.flatMap((one) => Object.keys(one.depths)))];
    for (const stage of stages) {
      let figure = charts.querySelector(`[data-stage="${CSS.escape(stage)}"]`);
      if (!figure) {
        figure = document.createElement("figure");
        figure.dataset.stage = stage;
        charts.append(figure);
      }
      figure.replaceChildren(caption(stage), chart(stage));
    }
  }

  function caption(stage) {
    const line = document.createElement("figcaption");
    const depths = seen.map((one) => one.depths[stage] ?? 0);
    const label = document.createElement("span");
    label.textContent = STAGES[stage] ?? stage;
    const numbers = document.createElement("span");
    numbers.textContent = `${depths.at(-1).toLocaleString("en")}, at most ${Math.max(...depths).toLocaleString("en")}`;
    line.append(label, numbers);
    return line;
  }

  function chart(stage) {
    const WIDTH = 300;
    const HEIGHT = 56;
    const first = seen[0].at;
    const now = Date.now();
    const span = Math.max(now - first, 60 * 1000);
    const most = Math.max(1, ...seen.map((one) => one.depths[stage] ?? 0));
    const places = [];
    let before = null;
    for (const one of seen) {
      const x = (((one.at - first) / span) * WIDTH).toFixed(1);
      const y = (HEIGHT - 2 - ((one.depths[stage] ?? 0) / most) * (HEIGHT - 6)).toFixed(1);
      if (before !== null) places.push(`${x},${before}`); // nothing changed up to here
      places.push(`${x},${y}`);
      before = y;
    }
    const right = (((now - first) / span) * WIDTH).toFixed(1); // nothing has changed since
    places.push(`${right},${before}`);
    const picture = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
    picture.setAttribute("aria-label", `${STAGES[stage] ?? stage}, over the last minutes`);
    picture.append(
      drawn("line", { class: "floor", x1: 0, y1: HEIGHT - 1, x2: WIDTH, y2: HEIGHT - 1 }),
      drawn("polygon", { class: "area", points: `0,${HEIGHT} ${places.join(" ")} ${right},${HEIGHT}` }),
      drawn("polyline", { class: "line", points: places.join(" ") }),
    );
    return picture;
  }

  function drawn(name, attributes) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  }

  function say(words, isBad) {
    if (!said) return;
    said.textContent = words;
    clearTimeout(hushing);
    if (!isBad) hushing = setTimeout(() => (said.textContent = ""), SAID_MS);
    said.classList.toggle("bad", isBad);
  }

  async function ask(button) {
    if (button.dataset.asks && !confirm(button.dataset.asks)) return;
    button.disabled = true;
    const label = button.firstChild.textContent;
    say(`${label}: asked…`, false);
    try {
      const answer = await fetch(base + button.dataset.post, {
        method: "POST",
        credentials: "same-origin",
        headers: { "Content-Type": "application/json", "X-Form-Token": meta("form-token") },
        body: button.dataset.body ?? "{}",
      });
      const told = await answer.json().catch(() => ({}));
      if (answer.ok) say(`${label}: ${answer.status === 202 ? "asked" : "done"}`, false);
      else say([told.detail ?? `refused (${answer.status})`, told.hint].filter(Boolean).join("; "), true);
    } catch {
      say("no answer: the service cannot be reached", true);
    }
    button.disabled = false;
    refresh();
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button[data-post]");
    if (button) ask(button);
  });
  showButtons(document);
  if (document.querySelector("[data-live]")) follow();
})();
