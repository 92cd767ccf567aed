// SPDX-License-Identifier: Apache-2.0

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
  constructor(live, onEvent) {
    this.live = live
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

  /** Reads for ever: from the page's WebSocket, or a stream of its own where there is none. */
  async run() {
    this.live.onEvent = (event) => this.takeOne(event)
    this.live.onLost = (count) => this.takeLost(count)
    this.live.onChange.push(() => {
      setText(this.state, this.live.isOpen ? "" : "Not connected; trying again.")
      this.abort?.abort()
      this.wake?.()
    })
    for (let pause = 500; ; pause = Math.min(pause * 2, 10_000)) {
      if (!this.live.hasGivenUp) {
        await new Promise((resolve) => { this.wake = resolve })
        pause = 500
        continue
      }
      this.abort = new AbortController()
      let watchdog = setTimeout(() => this.abort.abort(), silence)
      try {
        for await (const message of api.events(this.abort.signal, this.live.lastEvent)) {
          clearTimeout(watchdog)
          watchdog = setTimeout(() => this.abort.abort(), silence)
          setText(this.state, "")
          pause = 500
          this.live.lastEvent = message.id ?? this.live.lastEvent
          if (message.event !== "comment") this.take(message.data)
        }
      } catch {
        // Said below; the poll says why.
      } finally {
        clearTimeout(watchdog)
      }
      if (!this.live.hasGivenUp) continue
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
    this.takeOne(event)
  }

  /** The server's note of what it has lost has no text; a publisher's event of the same name has one. */
  takeOne(event) {
    if (event.event === "events-lost" && event.text == null) this.takeLost(event.count)
    else this.takeEvent(event)
  }

  takeLost(count) {
    this.takeEvent({
      event: "events-lost", level: "warning", text: `${count === 1 ? "1 event was" : `${count} events were`} lost on the way to this page.`,
      wallTime: new Date().toISOString(),
    })
  }

  takeEvent(event) {
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
