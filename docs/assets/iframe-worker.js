/* Browsers start no worker from a file. Where the site is read from files, the search runs in a frame. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.inside = frame.contentWindow;
      const inside = this.inside;
      inside.postMessage = (data) => {
        this.dispatchEvent(new MessageEvent("message", { data }));
        if (this.onmessage) this.onmessage(new MessageEvent("message", { data }));
      };
      inside.importScripts = (...urls) =>
        urls.reduce((done, one) => done.then(() => this.load(new URL(one, url))), Promise.resolve());
      this.ready = this.load(url);
    }
    load(url) {
      return new Promise((done, failed) => {
        const script = this.inside.document.createElement("script");
        script.src = url;
        script.onload = done;
        script.onerror = failed;
        this.inside.document.head.appendChild(script);
      });
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.inside.frameElement.remove();
    }
  };
}
