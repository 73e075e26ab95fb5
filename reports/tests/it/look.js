// What a browser makes of the page: put first into it, and told to the page around it as JSON once it has loaded.
(() => {
  const wrong = [];
  addEventListener("error", (event) => wrong.push(String(event.message)));
  addEventListener("unhandledrejection", (event) => wrong.push(String(event.reason)));
  for (const way of ["error", "warn"]) console[way] = (...words) => wrong.push(words.join(" "));
  const all = (selector) => [...document.querySelectorAll(selector)];
  const area = (element) => {
    const box = element.getBoundingClientRect();
    return box.width * box.height;
  };
  addEventListener("load", () => setTimeout(() => {
    const found = { wrong, width: innerWidth, scrolls: document.documentElement.scrollWidth };
    const wider = (element) => element.getBoundingClientRect().right > innerWidth + 1 && !element.closest(".scroll, svg");
    found.wider = all("body *").filter(wider).map((element) => element.outerHTML.slice(0, 200));
    found.loaded = performance.getEntriesByType("resource").map((entry) => entry.name);
    found.paint = (performance.getEntriesByName("first-contentful-paint")[0] || {}).startTime;
    // One tab shows; all are opened to look at what they have.
    const tabs = all("main > .tab");
    found.tabs = tabs.filter((tab) => !tab.hidden).length;
    for (const tab of tabs) tab.hidden = false;
    found.figures = all("figure").length;
    found.undrawn = all("figure").filter((figure) => !all("svg").some((svg) => figure.contains(svg) && area(svg) > 10_000)).length;
    const contents = document.querySelector("nav > details");
    found.folded = contents ? !contents.open : null;
    for (const details of all("details")) details.open = true;
    const inputs = all("a[href], button, select, input, summary");
    const reached = (element) => { element.focus(); return element.tabIndex >= 0 && document.activeElement === element; };
    found.inputs = inputs.length;
    found.unreachable = inputs.filter((element) => area(element) > 0 && !reached(element)).map((element) => element.outerHTML);
    const mark = document.querySelector("g.value");
    if (mark) mark.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
    const tip = document.getElementById("tip");
    found.tip = tip && !tip.hidden ? tip.textContent : "";
    const chip = document.querySelector(".chips button");
    if (chip) chip.click();
    found.unseen = all("g.unseen").length;
    const missed = document.getElementById("missed");
    if (missed) missed.click();
    found.hidden = all("section.artefact[hidden]").length;
    setTimeout(() => {
      found.values = all("figure details td").length;
      parent.postMessage(JSON.stringify(found), "*");
    }, 100);
  }, 100));
})();
