// SPDX-License-Identifier: Apache-2.0

// The one WebSocket of the page: pictures of all previews, and events. docs/control.md has its messages.

import { session } from "./api.js"
import { sleep } from "./dom.js"

const headBytes = 40
const kinds = { 1: "jpeg", 2: "h264", 3: "h265" }
// Without an answer for so long the connection is dead, whatever the browser thinks.
const pingEvery = 10_000
const silence = 25_000
// Round trips that the clock's distance is taken from: the shortest of them.
const mostTrips = 20
// After so many attempts in vain pictures and events come by requests, and the socket is tried at long intervals.
const attempts = 2

const hex = (text) => [...new TextEncoder().encode(text)].map((byte) => byte.toString(16).padStart(2, "0")).join("")

/** The head of a binary message. */
export function readHead(buffer) {
  const view = new DataView(buffer)
  const flags = view.getUint8(1)
  return {
    kind: kinds[view.getUint8(0)], isKeyframe: (flags & 1) !== 0, followsGap: (flags & 2) !== 0,
    // How it is brought upright: mirrored, then turned clockwise; then mirrored as previews of the camera are.
    isMirrored: (flags & 4) !== 0, turns: (flags >> 3) & 3, isMirroredInPreviews: (flags & 32) !== 0,
    preview: view.getUint16(2), number: view.getUint32(4), frame: view.getBigUint64(8).toString(),
    // Milliseconds of the server's clock.
    capturedAt: Number(view.getBigInt64(16)) / 1e6,
    // Microseconds, whole: a decoder gives them back so.
    time: Math.round(Number(view.getBigInt64(24)) / 1e3), reorder: view.getUint32(32), duration: view.getUint32(36),
    payload: new Uint8Array(buffer, headBytes),
  }
}

export class Live {
  constructor() {
    this.socket = null
    this.isOpen = false
    // True: whoever waits for it should take another way meanwhile.
    this.hasGivenUp = false
    this.viewers = new Map()
    this.nextID = 1
    this.trips = []
    this.lastEvent = null
    // Called with each event's text, and how many were lost.
    this.onEvent = () => {}
    this.onLost = () => {}
    // Called when the socket opens or is away.
    this.onChange = []
    this.begin = null
    this.begun = new Promise((resolve) => { this.begin = resolve })
    this.run()
  }

  /** The first attempt waits for this: before it, the server may ask for a token. */
  start() { this.begin() }

  get address() {
    const address = new URL("api/v1/live", location.href)
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:"
    return address.href
  }

  async run() {
    await this.begun
    let failures = 0
    for (;;) {
      const wasOpen = await this.connect()
      failures = wasOpen ? 0 : failures + 1
      this.hasGivenUp = failures >= attempts
      if (failures <= attempts) this.tell()
      const pause = this.hasGivenUp ? 10_000 : Math.min(500 * 2 ** failures, 5000)
      await sleep(pause + Math.random() * pause / 2)
    }
  }

  /** One connection, from its beginning to its end; returns whether it was open. */
  connect() {
    return new Promise((resolve) => {
      const token = session.token
      const socket = new WebSocket(this.address, ["framehost.v1", ...(token ? [`framehost.token.${hex(token)}`] : [])])
      socket.binaryType = "arraybuffer"
      let pinger
      let wasOpen = false
      const end = () => {
        clearInterval(pinger)
        if (this.socket !== socket) return
        this.socket = null
        this.isOpen = false
        resolve(wasOpen)
      }
      this.socket = socket
      socket.onopen = () => {
        wasOpen = this.isOpen = true
        this.hasGivenUp = false
        this.trips = []
        this.heard = performance.now()
        this.send({ events: this.lastEvent ?? true })
        for (let count = 0; count < 5; count += 1) this.ping()
        pinger = setInterval(() => {
          // A tab that slept has heard nothing: one answer is waited for first.
          if (performance.now() - this.heard > silence + pingEvery) {
            socket.close()
            end()
          } else this.ping()
        }, pingEvery)
        for (const viewer of this.viewers.values()) viewer.connected()
        this.tell()
      }
      socket.onmessage = ({ data }) => {
        this.heard = performance.now()
        if (typeof data === "string") this.take(JSON.parse(data))
        else this.give(readHead(data))
      }
      socket.onclose = end
      // A close follows.
      socket.onerror = () => {}
    })
  }

  tell() { for (const action of this.onChange) action() }

  send(message) { if (this.isOpen) this.socket.send(JSON.stringify(message)) }

  ping() { this.send({ ping: Math.round(performance.now() * 1000) }) }

  take(message) {
    if (message.event) {
      this.lastEvent = message.id
      this.onEvent(message.event)
    } else if (message.lost) this.onLost(message.lost)
    else if (message.pong != null) {
      const [sent, now] = [message.pong / 1000, performance.now()]
      this.trips.push({ took: now - sent, ahead: message.now / 1e6 - (now + sent) / 2 })
      if (this.trips.length > mostTrips) this.trips.shift()
    } else if (message.ended != null) this.viewers.get(message.ended)?.ended(message.error)
    else if (message.none != null) this.viewers.get(message.none)?.nothing()
    // Before the server closes for a fault of the page's: for whoever looks for it.
    else if (message.error) console.warn(message.error.what)
  }

  give(head) {
    const viewer = this.viewers.get(head.preview)
    // Of one that is closed: nobody answers.
    if (viewer) viewer.given(head)
  }

  /** Milliseconds of the server's clock; null before it is known. */
  get now() {
    if (this.trips.length === 0) return null
    const best = this.trips.reduce((a, b) => (b.took < a.took ? b : a))
    return performance.now() + best.ahead
  }

  add(viewer) {
    while (this.viewers.has(this.nextID)) this.nextID = (this.nextID % 65_535) + 1
    const id = this.nextID
    this.nextID = (this.nextID % 65_535) + 1
    this.viewers.set(id, viewer)
    return id
  }

  remove(id) {
    if (this.viewers.delete(id)) this.send({ close: id })
  }
}
