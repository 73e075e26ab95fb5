"use strict";
// A mark that is pointed at says its value; fronts are filtered by method and panel; sections by device and verdict.
(() => {
  const make = (tag, set = {}, ...inside) => {
    const made = Object.assign(document.createElement(tag), set);
    made.append(...inside);
    return made;
  };
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // The words of a mark are in its title, which a browser would show too late and a second time.
  for (const mark of all("g.value")) {
    const title = mark.querySelector("title");
    mark.dataset.words = title.textContent;
    title.remove();
  }
  const tip = make("div", { id: "tip", hidden: true });
  document.body.append(tip);
  document.addEventListener("pointerover", (event) => {
    const mark = event.target.closest && event.target.closest("g.value");
    tip.hidden = !mark;
    if (mark) tip.textContent = mark.dataset.words;
  });
  document.addEventListener("pointermove", (event) => {
    if (tip.hidden) return;
    tip.style.left = Math.max(4, Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 4)) + "px";
    tip.style.top = Math.max(4, event.clientY - tip.offsetHeight - 10) + "px";
  });

  // On a narrow screen the panels of a figure are stacked, below its words and above its legend.
  const stack = (svg) => {
    const parts = [...svg.children];
    const panels = parts.filter((part) => part.matches("g.panel"));
    if (panels.length < 2) return;
    const cut = (elements, className) => {
      const boxes = elements.map((element) => element.getBBox());
      const [left, top] = ["x", "y"].map((key) => Math.min(...boxes.map((box) => box[key])) - 20);
      const right = Math.max(...boxes.map((box) => box.x + box.width)) + 20;
      const bottom = Math.max(...boxes.map((box) => box.y + box.height)) + 20;
      const part = svg.cloneNode(false);
      part.setAttribute("viewBox", [left, top, right - left, bottom - top].join(" "));
      part.setAttribute("class", className);
      part.style.maxWidth = (right - left) / 4 + "px";
      part.append(...elements);
      return part;
    };
    const legend = [[]];
    for (const part of parts.slice(parts.indexOf(panels.at(-1)) + 1)) {
      legend.at(-1).push(part);
      if (part.matches("text")) legend.push([]);
    }
    const words = parts.slice(0, parts.indexOf(panels[0])).filter((part) => part.matches("text"));
    svg.before(
      ...words.map((word) => make("p", { className: "muted", textContent: word.textContent })),
      ...panels.map((panel) => cut([panel], panel.getBBox().width > 2400 ? "wide" : "stacked")),
      ...legend.filter((entry) => entry.length).map((entry) => cut(entry, "entry")),
    );
    svg.remove();
  };
  if (matchMedia("(max-width: 600px)").matches) for (const svg of all("figure > svg")) stack(svg);

  for (const figure of all("figure")) {
    const panels = all("g.panel", figure).filter((panel) => panel.dataset.name);
    if (figure.querySelector("g.front")) figure.prepend(controls(figure, panels));
    const marks = all("g.value", figure);
    if (marks.length) figure.append(values(marks));
  }

  // A button for each method of a front, and a choice among its panels.
  function controls(figure, panels) {
    const row = make("div", { className: "chips" });
    const series = all("g.front g.series", figure);
    for (const name of new Set(series.map((group) => group.dataset.name))) {
      const chip = make("button", { type: "button", textContent: name });
      chip.setAttribute("aria-pressed", "true");
      chip.onclick = () => {
        const shown = chip.getAttribute("aria-pressed") !== "true";
        chip.setAttribute("aria-pressed", String(shown));
        for (const group of series) if (group.dataset.name === name) group.classList.toggle("unseen", !shown);
      };
      row.append(chip);
    }
    if (panels.length > 1) {
      const choice = make("select", {}, make("option", { value: "", textContent: "all panels" }));
      choice.setAttribute("aria-label", "panel");
      for (const name of new Set(panels.map((panel) => panel.dataset.name))) choice.append(make("option", {}, name));
      choice.onchange = () => {
        for (const panel of panels) panel.classList.toggle("dim", choice.value !== "" && panel.dataset.name !== choice.value);
      };
      row.append(choice);
    }
    return row;
  }

  // The values of a figure as a table, made when a reader opens it.
  function values(marks) {
    const details = make("details", {}, make("summary", { textContent: "Values" }));
    details.addEventListener("toggle", () => {
      if (details.children.length > 1) return;
      const seen = new Set();
      const rows = marks.flatMap((mark) => {
        const panel = mark.closest("g.panel");
        const name = panel ? panel.dataset.name : "";
        const key = name + "\n" + mark.dataset.words;
        if (seen.has(key)) return [];
        seen.add(key);
        return [make("tr", {}, make("td", { textContent: name }), make("td", { textContent: mark.dataset.words }))];
      });
      details.append(make("div", { className: "scroll" }, make("table", {}, make("tbody", {}, ...rows))));
    });
    return details;
  }

  // One tab at a time: the one that was chosen, or that has what the address names.
  const tabs = all(".tabs [role=tab]");
  const parts = all("main > .tab");
  const show = (name) => {
    for (const part of parts) part.hidden = part.dataset.tab !== name;
    for (const tab of tabs) tab.setAttribute("aria-selected", String(tab.dataset.tab === name));
  };
  const follow = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const part = target && target.closest("main > .tab");
    show(part ? part.dataset.tab : "overview");
    const fold = target && target.closest("details.bare");
    if (fold) fold.open = true;
    if (part) target.scrollIntoView();
  };
  if (tabs.length) {
    tabs[0].parentElement.hidden = false;
    for (const tab of tabs) {
      tab.onclick = () => {
        history.replaceState(null, "", location.pathname + location.search);
        show(tab.dataset.tab);
        scrollTo(0, 0);
      };
      tab.onkeydown = (event) => {
        const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!step) return;
        const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
        next.focus();
        next.click();
      };
    }
    addEventListener("hashchange", follow);
    follow();
  }

  const filters = document.querySelector(".filters");
  const device = document.getElementById("device");
  const missed = document.getElementById("missed");
  const filter = () => {
    for (const section of all("section.artefact")) {
      const of = !device || !device.value || section.dataset.devices.split(" ").includes(device.value);
      const misses = section.classList.contains("bad") || section.classList.contains("part");
      section.hidden = !of || (missed.checked && !misses);
      const entry = all("nav a").find((link) => link.hash === "#" + section.querySelector("h3").id);
      if (entry) entry.parentElement.hidden = section.hidden;
    }
  };
  if (!filters) return;
  filters.hidden = false;
  for (const input of [device, missed]) if (input) input.onchange = filter;

  // On a narrow screen the contents are folded, and fold again once an entry was chosen.
  const contents = document.querySelector("nav > details");
  const narrow = matchMedia("(max-width: 68rem)");
  contents.open = !narrow.matches;
  contents.addEventListener("click", (event) => {
    if (narrow.matches && event.target.closest("a")) contents.open = false;
  });
})();
