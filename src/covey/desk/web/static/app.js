// Small comforts. Every step also works without them: forms are forms, and the server checks everything again.
(() => {
  "use strict";
  const say = (element, words) => { element.textContent = words; element.hidden = !words; };

  // The slider is logarithmic; the number beside it is what counts.
  const tidy = (value) => String(Number(value.toPrecision(2)));
  document.addEventListener("input", (event) => {
    const { id, value } = event.target;
    const slider = document.getElementById("epsilon-slider");
    const number = document.getElementById("epsilon");
    if (!slider || !number) return;
    if (id === "epsilon-slider") number.value = tidy(10 ** Number(value));
    if (id === "epsilon" && Number(value) > 0) slider.value = String(Math.log10(Number(value)));
    slider.setAttribute("aria-valuetext", `epsilon ${number.value}`);
  });

  // Files: say at once that a table is too large, and take one that is dropped.
  const input = document.getElementById("table");
  if (input) {
    const problem = document.getElementById("table-problem");
    const limit = Number(input.dataset.limit);
    const check = () => {
      const file = input.files[0];
      const wrong = file && file.size > limit ? input.dataset.tooLarge : "";
      say(problem, wrong);
      input.setAttribute("aria-invalid", String(Boolean(wrong)));
      return !wrong;
    };
    input.addEventListener("change", check);
    check();  // a file may have been chosen before this script was there
    input.form.addEventListener("submit", (event) => {
      if (!check()) { event.preventDefault(); input.focus(); return; }
      const button = input.form.querySelector("button.primary");
      button.textContent = "Reading the table …";
      button.setAttribute("aria-busy", "true");
    });
    const drop = document.querySelector(".drop");
    for (const kind of ["dragover", "dragleave", "drop"]) {
      drop.addEventListener(kind, (event) => {
        event.preventDefault();
        drop.classList.toggle("over", kind === "dragover");
        if (kind === "drop" && event.dataTransfer.files.length) { input.files = event.dataTransfer.files; check(); }
      });
    }
  }

  // Whatever stands in the forms of the page goes along when the rest is to be confirmed, kept already or not.
  document.addEventListener("submit", (event) => {
    if (!event.target.elements?.typed) return;
    const typed = {};
    for (const form of document.querySelectorAll(".column form[data-place]")) {
      typed[form.dataset.place] = [...new FormData(form)].filter(([name]) => !["csrf", "public", "own_name"].includes(name));
    }
    event.target.elements.typed.value = JSON.stringify(typed);
  });

  // A column that is settled hands the keyboard on to the next that is not.
  document.addEventListener("htmx:afterSettle", (event) => {
    const card = event.detail.elt.closest ? event.detail.elt.closest(".column") : null;
    if (!card || event.detail.elt.matches(".typed")) return;
    const alert = card.querySelector(".alert.bad");
    if (alert) { alert.focus(); return; }
    if (!card.matches(".settled, .out")) return;
    const open = [...document.querySelectorAll(".column:not(.settled):not(.out)")];
    const next = open.find((other) => card.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING) || open[0];
    (next ? next.querySelector("h3") : document.getElementById("go-on") || card.querySelector("h3")).focus();
  });

  // Other limits than the drafted ones stand there now: the line says so, and the warning of the draft goes as far as it is answered.
  document.addEventListener("htmx:afterSettle", (event) => {
    const told = event.detail.elt.querySelector?.(":scope > .told");
    const card = told?.closest(".column");
    if (!card) return;
    const domain = card.querySelector(".line .domain");
    if (domain && told.dataset.domain) domain.textContent = told.dataset.domain;
    for (const doubt of card.querySelectorAll(".doubt")) doubt.textContent = told.dataset.doubt;
    for (const guard of card.querySelectorAll(".guard")) guard.hidden = !told.dataset.doubt;
  });

  // Many columns: show some of them, walk through those that are shown, and choose once for a group or for those that are ticked.
  const rows = () => [...document.querySelectorAll(".columns > .column")];
  const draft = (state) => (state === "look" || state === "open" ? "draft" : state);
  const filter = () => {
    const word = document.getElementById("filter").value.trim().toLowerCase();
    for (const row of rows()) {
      row.hidden = !row.dataset.name.toLowerCase().includes(word);
      if (row.hidden) row.querySelector(".pick").checked = false;
    }
    const shown = rows().filter((row) => !row.hidden).length;
    document.getElementById("filter-count").textContent = word ? `${shown} of ${rows().length} columns` : "";
    for (const form of document.querySelectorAll("form[data-group]")) {
      const own = [...form.parentElement.querySelectorAll(".columns > .column")];
      const open = own.filter((row) => !row.hidden && draft(row.dataset.state) === draft(form.dataset.group));
      const ticked = open.filter((row) => row.querySelector(".pick").checked);
      const all = form.querySelector(".pick-all");
      if (all) {
        all.closest("label").hidden = !open.length;
        all.checked = open.length > 0 && ticked.length === open.length;
        all.indeterminate = ticked.length > 0 && !all.checked;
      }
      const count = ticked.length || open.length;
      const which = count === 1 ? "this one" : ticked.length ? `the ${count} ticked` : open.length < own.length ? `these ${count}` : `all ${count}`;
      form.elements.all.value = open.map((row) => row.id.replace("column-", "")).join(" ");
      for (const button of form.querySelectorAll("button[data-verb]")) {
        button.disabled = !count;
        button.textContent = `${button.dataset.verb} ${which}${button.dataset.end}`;
      }
    }
  };
  if (document.getElementById("filter")) filter();
  document.addEventListener("input", (event) => {
    if (event.target.matches(".pick-all")) {
      for (const row of event.target.closest("section").querySelectorAll(".columns > .column")) {
        row.querySelector(".pick").checked = event.target.checked && !row.hidden;
      }
    }
    if (event.target.matches("#filter, .pick, .pick-all")) filter();
  });
  document.addEventListener("htmx:afterSettle", () => { if (document.getElementById("filter")) filter(); });
  document.addEventListener("keydown", (event) => {
    const down = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const here = event.target.closest?.(".columns > .column");
    if (!down || !here || event.target.matches("input, select, textarea")) return;
    const open = rows().filter((row) => !row.hidden);
    const next = open[open.indexOf(here) + down];
    if (!next) return;
    event.preventDefault();
    (next.querySelector("summary") || next.querySelector("button, h3")).focus();
  });

  // Limits on the picture of a column: what lies beyond them is shaded, and drawing on it moves the nearer one.
  const DAY = 86400, asNumber = { date: (t) => Date.parse(t) / 1000 / DAY, datetime: (t) => Date.parse(`${t}Z`) / 1000 };
  const two = (value) => Number(value.toPrecision(2));
  const asText = {
    date: (v) => new Date(Math.round(v) * DAY * 1000).toISOString().slice(0, 10),
    datetime: (v) => new Date(Math.round(v / 3600) * 3600000).toISOString().slice(0, 19),
    integer: (v) => String(Math.round(two(v))),
    number: (v) => String(two(v)),
  };
  const shade = (form) => {
    for (const svg of form.closest(".column").querySelectorAll("svg[data-low]")) {
      const low = Number(svg.dataset.low), high = Number(svg.dataset.high), width = svg.viewBox.baseVal.width;
      for (const rect of svg.querySelectorAll(".beyond")) {
        const text = form.elements[rect.dataset.side]?.value ?? "";
        const value = text === "" ? NaN : (asNumber[svg.dataset.kind] ?? Number)(text);
        const at = Number.isFinite(value) ? Math.min(Math.max((value - low) / (high - low), 0), 1) * width : NaN;
        const left = rect.dataset.side === "minimum";
        rect.setAttribute("x", left || Number.isNaN(at) ? 0 : at);
        rect.setAttribute("width", Number.isNaN(at) ? 0 : left ? at : width - at);
      }
    }
  };
  const shadeAll = () => { for (const form of document.querySelectorAll(".column form[data-place]")) shade(form); };
  document.addEventListener("input", (event) => {
    const form = event.target.closest?.(".column form[data-place]");
    if (form) shade(form);
  });
  document.addEventListener("htmx:afterSettle", shadeAll);
  document.addEventListener("pointerdown", (event) => {
    const svg = event.target.closest?.(".sight svg[data-low]");
    const form = svg?.closest("form[data-place]");
    if (!form || !asText[svg.dataset.kind]) return;
    const low = Number(svg.dataset.low), high = Number(svg.dataset.high), box = svg.getBoundingClientRect();
    const at = (x) => low + (high - low) * Math.min(Math.max((x - box.left) / box.width, 0), 1);
    const ends = ["minimum", "maximum"].map((name) => form.elements[name]);
    const from = ends.map((field, k) => (field.value === "" ? [low, high][k] : (asNumber[svg.dataset.kind] ?? Number)(field.value)));
    const nearer = Math.abs(at(event.clientX) - from[0]) <= Math.abs(at(event.clientX) - from[1]) ? ends[0] : ends[1];
    const move = (moved) => {
      nearer.value = asText[svg.dataset.kind](at(moved.clientX));
      nearer.dispatchEvent(new Event("input", { bubbles: true }));
    };
    const stop = () => { window.removeEventListener("pointermove", move); window.removeEventListener("pointerup", stop); };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", stop);
    move(event);
  });

  // Every page asks whether covey still answers, and says so where it does not. A release that began in another tab is shown here too.
  const ASKED_EVERY = 2000, PATIENCE = 5000;  // milliseconds: so that it is said within seconds
  let leaving = false;
  window.addEventListener("pagehide", () => { leaving = true; });
  const gone = (words) => {
    const note = document.querySelector(".gone") ?? document.createElement("p");
    if (leaving || note.textContent === words) return;
    note.className = "alert bad gone";
    note.setAttribute("role", "alert");
    note.textContent = words;
    document.body.append(note);
  };
  const ask = async () => {
    try {
      const answer = await fetch("/alive", { signal: AbortSignal.timeout(PATIENCE) });
      if (!answer.ok) { gone("covey was started anew. Open the address that it printed: this page is of the earlier start."); return; }
      const { releasing } = await answer.json();
      document.querySelector(".gone")?.remove();
      const [, work, step] = window.location.pathname.match(/^\/work\/(\w+)\/(\w+)/) ?? [];
      if (!leaving && step !== "release" && releasing.includes(work)) window.location.assign(`/work/${work}/release`);
    } catch {
      gone("covey does not answer: it may have been stopped. Start it again with covey serve. The ledger shows what was charged.");
    }
  };
  window.setInterval(ask, ASKED_EVERY);

  // Whatever keeps a person waiting for more than three seconds says for how long it has: pages, forms, pieces of a page.
  const SLOW = 3000;  // milliseconds
  let since = 0, pieces = 0;
  const begin = () => { since ||= Date.now(); };
  const end = () => { since = 0; document.querySelector(".busy")?.remove(); };
  window.setInterval(() => {
    if (!since || Date.now() - since < SLOW) return;
    let note = document.querySelector(".busy");
    if (!note) {
      note = document.createElement("p");
      note.className = "alert busy";
      note.setAttribute("role", "status");
      note.append("covey is working on it. ", document.createElement("span"));
      note.lastChild.setAttribute("aria-hidden", "true");  // a number that grows is not read out every second
      document.body.append(note);
    }
    note.lastChild.textContent = `${Math.round((Date.now() - since) / 1000)} seconds so far.`;
  }, 1000);
  document.addEventListener("submit", (event) => { if (!event.defaultPrevented && !event.target.target) begin(); });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='/']");
    const plain = !(event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey);
    if (link && plain && !link.target && !link.hasAttribute("download")) begin();
  });
  document.addEventListener("htmx:beforeRequest", () => { pieces += 1; begin(); });
  document.addEventListener("htmx:afterRequest", () => { pieces -= 1; if (pieces <= 0) end(); });

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    try {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      button.textContent = "Copied";
    } catch { button.textContent = "Select the text and copy it"; }
  });

  // Pages kept by the browser's back button may be old: ask again.
  window.addEventListener("pageshow", (event) => { if (event.persisted) window.location.reload(); });
})();
