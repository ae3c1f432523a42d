"use strict";
// The keyboard: / goes to the box, j and k or the arrows go from hit to hit, Enter opens one (it is a link).
(() => {
  const box = document.getElementById("q");
  const heading = document.querySelector(".outline a[aria-current]");
  if (heading) {
    const outline = heading.closest(".outline");
    outline.scrollTop = heading.offsetTop - outline.clientHeight / 2;
  }
  const links = () => [...document.querySelectorAll(".hits h2 a, tr.hit td:first-child a")];

  function isTyping(target) {
    return target.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
  }

  function go(step) {
    const all = links();
    if (!all.length) return false;
    const at = all.indexOf(document.activeElement);
    const next = at < 0 ? (step > 0 ? 0 : -1) : at + step;
    if (next < 0) {
      if (box) box.focus();
      return true;
    }
    if (next >= all.length) return true;
    all[next].focus({ preventScroll: true });
    all[next].closest(".hit").scrollIntoView({ block: "nearest" });
    return true;
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const typing = isTyping(event.target);
    if (event.key === "/" && !typing && box) {
      box.focus();
      box.select();
      event.preventDefault();
    } else if (event.key === "Escape" && event.target === box) {
      box.blur();
    } else if (event.key === "ArrowDown" && (event.target === box || !typing) && isAmongHits(event.target)) {
      if (go(1)) event.preventDefault();
    } else if (event.key === "ArrowUp" && !typing && isAmongHits(event.target)) {
      if (go(-1)) event.preventDefault();
    } else if ((event.key === "j" || event.key === "k") && !typing) {
      if (go(event.key === "j" ? 1 : -1)) event.preventDefault();
    }
  });

  // elsewhere on the page the arrows scroll, as everywhere
  function isAmongHits(target) {
    return target === box || links().includes(target);
  }
})();
