// A page that was opened from a folder may start no worker, and the search is one. There a hidden frame does a worker's work;
// on a server nothing changes. The theme would fetch such a script from another host, which a folder may not reach.
(() => {
  "use strict";
  if (location.protocol !== "file:") return;
  // Inside the frame: messages go to the page, and scripts are loaded one after the other.
  const setting = `<script>
    postMessage = words => parent.postMessage(words, "*");
    importScripts = (...places) => places.reduce((before, place) => before.then(() => new Promise((done, failed) => {
      const script = document.createElement("script");
      script.src = place;
      script.onload = done;
      script.onerror = failed;
      document.body.append(script);
    })), Promise.resolve());
  <\/script>`;
  window.Worker = class extends EventTarget {
    constructor(place) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "Search";
      document.body.append(this.frame);
      this.waiting = [];
      const script = `<script src="${new URL(place, location.href).href.replaceAll('"', "%22")}"><\/script>`;
      this.frame.addEventListener("load", () => {
        this.ready = true;
        this.waiting.splice(0).forEach(words => this.send(words));
      });
      this.frame.srcdoc = `<!doctype html><html lang="en"><title>Search</title><body>${setting}${script}</body></html>`;
      this.heard = event => {
        if (event.source === this.frame.contentWindow) this.hear(event.data);
      };
      window.addEventListener("message", this.heard);
    }

    hear(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      this.onmessage?.(event);
    }

    send(words) {
      this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data: words, source: window }));
    }

    postMessage(words) {
      if (this.ready) this.send(words);
      else this.waiting.push(words);
    }

    terminate() {
      window.removeEventListener("message", this.heard);
      this.frame.remove();
    }
  };
})();
