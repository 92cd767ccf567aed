// The list of events, newest first, from the server's stream.

import { announce } from "./announce.js"
import { api } from "./api.js"
import { find, make, setText, sleep } from "./dom.js"
import { clock } from "./words.js"

const most = 200
const ranks = { debug: 0, info: 1, warning: 2, error: 3 }
// The server sends at least a comment every 15 s.
const silence = 40_000
const heard = /^(recording-did-|camera-|.*-(lost|back|failed)$)/

export class EventList {
  /** - onEvent: called with each event before it is listed. */
  constructor(onEvent) {
    this.onEvent = onEvent
    this.list = find("#event-list")
    this.state = find("#events-state")
    this.level = find("#level")
    this.events = []
    this.fresh = []
    this.level.addEventListener("change", () => this.drawAll())
    find("#clear-events").addEventListener("click", () => {
      this.events = []
      this.drawAll()
    })
  }

  /** Reads for ever; connects again when the stream ends. */
  async run() {
    let lastID
    for (let pause = 500; ; pause = Math.min(pause * 2, 10_000)) {
      const abort = new AbortController()
      let watchdog = setTimeout(() => abort.abort(), silence)
      try {
        for await (const message of api.events(abort.signal, lastID)) {
          clearTimeout(watchdog)
          watchdog = setTimeout(() => abort.abort(), silence)
          setText(this.state, "")
          pause = 500
          lastID = message.id ?? lastID
          if (message.event !== "comment") this.take(message.data)
        }
      } catch {
        // Said below; the poll says why.
      } finally {
        clearTimeout(watchdog)
      }
      setText(this.state, "Not connected; trying again.")
      await sleep(pause + Math.random() * pause / 2)
    }
  }

  take(text) {
    let event
    try {
      event = JSON.parse(text)
    } catch {
      return
    }
    if (event.event === "events-lost") {
      event = {
        event: "events-lost", level: "warning", text: `${event.count} events were lost on the way to this page.`,
        wallTime: new Date().toISOString(),
      }
    }
    this.onEvent(event)
    if (event.level === "error" || event.state === "failed" || heard.test(event.event ?? "")) announce(event.text)
    this.events.unshift(event)
    if (this.events.length > most) this.events.length = most
    if (!this.passes(event)) return
    this.fresh.push(event)
    // Many come at once: they are drawn together.
    this.timer ??= setTimeout(() => {
      this.timer = null
      this.list.prepend(...this.fresh.splice(0).reverse().slice(0, most).map(row))
      while (this.list.children.length > most) this.list.lastElementChild.remove()
    }, 100)
  }

  passes(event) { return (ranks[event.level] ?? 1) >= ranks[this.level.value] }

  drawAll() {
    this.fresh = []
    this.list.replaceChildren(...this.events.filter((event) => this.passes(event)).map(row))
  }
}

const marks = { debug: "·", info: "i", warning: "▲", error: "✕" }

function row(event) {
  const level = ranks[event.level] === undefined ? "info" : event.level
  return make("li", { "data-level": level },
    make("time", { datetime: event.wallTime ?? "" }, clock(event.wallTime)),
    make("span", { class: "level" }, make("span", { "aria-hidden": "true" }, marks[level]),
      make("span", { class: "unseen" }, level)),
    make("span", { class: "what" }, event.stage ? make("strong", {}, event.stage) : null, event.stage ? " " : "",
      make("code", {}, event.event ?? ""), " ", event.text ?? ""))
}
