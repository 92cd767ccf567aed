// SPDX-License-Identifier: Apache-2.0

// Where previews get their pictures: all of them by one WebSocket; by requests where there is none.

import { api, controlsUnderWay } from "./api.js"
import { sleep } from "./dom.js"
import { makePlayer } from "./video.js"

// Browsers open six connections to a server: events and figures need two of them, controls must never wait for pictures.
const mostInFlight = 4
const mostFaults = 5

class Slots {
  constructor(count) {
    this.free = count
    this.waiting = []
  }

  async take() {
    if (this.free > 0) this.free -= 1
    else await new Promise((resolve) => this.waiting.push(resolve))
    while (controlsUnderWay > 0) await sleep(20)
  }

  give() {
    const next = this.waiting.shift()
    if (next) next()
    else this.free += 1
  }
}

export class PictureFeed {
  constructor(live) {
    this.live = live
    this.slots = new Slots(mostInFlight)
  }

  /** - wishes: `{ form: { width, height, fit }, rate }`; read anew for each picture. rate 0: as many as there are.
   *    With `codec` ("H.264", "H.265") the stage's own access units are shown, and the rest means nothing.
   *  - onPicture(source, { width, height, frame, age, isMirrored, turns, isMirroredInPreviews }): draws it at once; the next
   *    one comes when it returns. `age`: milliseconds, null where it is not known. What lies on its side is mirrored, then
   *    turned clockwise, then mirrored for who is looked at.
   *  - onWords: says why there is none; "" when there is one again.
   *  - onUnable: says why this browser can show none at all.
   *  Returns `{ pause(), resume(), close() }`; begins paused. `resume()` also says that wishes have changed. */
  open(stage, wishes, onPicture, onWords, onUnable) {
    return wishes.codec ? new VideoViewer(this.live, stage, wishes, onPicture, onWords, onUnable)
      : new Viewer(this, stage, wishes, onPicture, onWords)
  }
}

/** A preview, by the way that there is. */
class Viewer {
  constructor(feed, stage, wishes, onPicture, onWords) {
    this.pushed = new PushedViewer(feed.live, stage, wishes, onPicture, onWords)
    this.asking = new AskingViewer(stage, wishes, onPicture, onWords, feed.slots)
    this.live = feed.live
    this.isPaused = true
    this.change = () => this.choose()
    this.live.onChange.push(this.change)
    this.asking.run()
  }

  choose() {
    const asks = this.live.hasGivenUp
    if (this.isPaused || !asks) this.asking.pause()
    else this.asking.resume()
    if (this.isPaused || asks) this.pushed.pause()
    else this.pushed.resume()
  }

  pause() {
    this.isPaused = true
    this.choose()
  }

  resume() {
    this.isPaused = false
    this.choose()
  }

  close() {
    this.live.onChange.splice(this.live.onChange.indexOf(this.change), 1)
    this.asking.close()
    this.pushed.close()
  }
}

/** Pictures that the server sends: the next one when this one was answered, so that a slow page gets fewer and never old
 *  ones. */
class PushedViewer {
  constructor(live, stage, wishes, onPicture, onWords) {
    Object.assign(this, { live, stage, wishes, onPicture, onWords })
    this.isPaused = true
    // What the server was asked for last, as text; null: nothing.
    this.asked = null
    this.id = live.add(this)
  }

  age(head) {
    const { now } = this.live
    return now == null ? null : now - head.capturedAt
  }

  get wish() {
    const { form, rate } = this.wishes
    return JSON.stringify({ open: this.id, stage: this.stage, quality: 80, ...form, ...(rate > 0 ? { rate } : {}) })
  }

  /** Tells the server what has changed. */
  ask() {
    if (this.isPaused || !this.live.isOpen || this.isWaiting) return
    const { wish } = this
    if (this.asked === wish) return
    this.asked = wish
    this.live.send(JSON.parse(wish))
  }

  pause() {
    if (!this.isPaused && this.asked) this.live.send({ pause: this.id })
    this.isPaused = true
  }

  resume() {
    const wasPaused = this.isPaused
    this.isPaused = false
    if (wasPaused && this.asked) this.live.send({ resume: this.id })
    this.ask()
  }

  close() {
    this.isPaused = true
    clearTimeout(this.isWaiting)
    this.live.remove(this.id)
  }

  // From the socket.

  connected() {
    this.asked = null
    this.ask()
  }

  nothing() { this.onWords("No picture yet.") }

  ended(error) {
    this.asked = null
    this.onWords(`${error?.place ? `${error.place}: ` : ""}${error?.what ?? "the preview has ended"}. ${error?.remedy ?? ""}`)
    // The stage may be there again in a while.
    this.isWaiting = setTimeout(() => {
      this.isWaiting = null
      this.ask()
    }, 2000)
  }

  async given(head) {
    try {
      if (!this.isPaused) {
        const bitmap = await createImageBitmap(new Blob([head.payload], { type: "image/jpeg" }))
        if (!this.isPaused) {
          this.onWords("")
          this.onPicture(bitmap, { width: bitmap.width, height: bitmap.height, frame: head.frame, age: this.age(head) })
        }
        bitmap.close()
      }
    } catch {
      this.onWords("The picture could not be decoded.")
      await sleep(500)
    }
    this.ask()
    this.live.send({ shown: this.id, number: head.number })
  }
}

// Names of the WebSocket.
const unitKinds = { "H.264": "h264", "H.265": "h265" }

/** An encoder's own access units. Each is answered when it has been shown: the server sees who is late, and goes on with a
 *  keyframe. */
class VideoViewer extends PushedViewer {
  constructor(live, stage, wishes, onPicture, onWords, onUnable) {
    super(live, stage, wishes, onPicture, onWords)
    this.onUnable = onUnable
    this.kind = unitKinds[wishes.codec]
    this.isUnable = false
    this.player = makePlayer(this.kind, (source, width, height, head) => {
      if (this.isPaused) return
      this.faults = 0
      this.onWords("")
      onPicture(source, {
        width, height, frame: head.frame, age: this.age(head), isMirrored: head.isMirrored, turns: head.turns,
        isMirroredInPreviews: head.isMirroredInPreviews,
      })
    }, (number) => live.send({ shown: this.id, number }), (text) => this.begin(text), (codec) => this.giveUp(codec))
    this.change = () => { if (live.hasGivenUp && !this.isUnable) onWords(`${wishes.codec} previews need a WebSocket, which could not be opened. The page keeps trying. A proxy before the server must pass on WebSockets. Previews of raw pictures need no WebSocket.`) }
    live.onChange.push(this.change)
    if (!this.player) this.giveUp()
  }

  get wish() { return JSON.stringify({ open: this.id, stage: this.stage, kind: this.kind }) }

  ask() { if (!this.isUnable) super.ask() }

  /** Says that this browser has no decoder, and asks the server for no further units.
   *  - detail: the codec string that the browser refused. */
  giveUp(detail) {
    this.isUnable = true
    if (this.asked) this.live.send({ close: this.id })
    this.asked = null
    const { codec } = this.wishes
    this.onUnable(this.kind !== "h264" && !isSecureContext
      ? `This browser may show ${codec} only on a page with TLS or of localhost. Open the page so, or preview a source that decodes the stream.`
      : `This browser cannot show ${codec}${detail ? ` (${detail})` : ""}. Use another browser, or preview ${this.kind === "h264" ? "a stage with raw pictures" : "a source that decodes the stream"}.`)
  }

  /** A keyframe comes when the preview goes on after a pause. */
  begin(text) {
    this.faults = (this.faults ?? 0) + 1
    // A stream that this browser cannot show is not asked for without end.
    const isLast = this.faults > mostFaults
    this.onWords(`${text}${/[.!?]$/.test(text) ? "" : "."} ${isLast ? "Close this preview and add it again, or use another browser." : this.isPaused ? "" : "Trying again."}`.trim())
    if (this.isPaused || isLast) return
    this.live.send({ pause: this.id })
    setTimeout(() => { if (!this.isPaused) this.live.send({ resume: this.id }) }, 500)
  }

  given(head) {
    // Units may still be on their way.
    if (head.kind === this.kind && !this.isUnable) this.player.take(head)
  }

  close() {
    this.live.onChange.splice(this.live.onChange.indexOf(this.change), 1)
    super.close()
    this.player?.close()
  }
}

/** Pictures by one request after the other: the answer to one asks for the next. */
class AskingViewer {
  constructor(stage, wishes, onPicture, onWords, slots) {
    Object.assign(this, { stage, wishes, onPicture, onWords, slots })
    this.isPaused = true
    this.isClosed = false
    this.abort = null
    this.wake = () => {}
  }

  pause() {
    this.isPaused = true
    // A picture that nobody will see need not come.
    this.abort?.abort()
  }

  resume() {
    this.isPaused = false
    this.wake()
  }

  close() {
    this.isClosed = true
    this.pause()
    this.wake()
  }

  async run() {
    while (!this.isClosed) {
      if (this.isPaused) {
        await new Promise((resolve) => { this.wake = resolve })
        continue
      }
      const begin = performance.now()
      const wait = await this.next()
      const rate = this.wishes.rate
      const due = rate > 0 ? begin + 1000 / rate - performance.now() : 0
      if (Math.max(wait, due) > 0) await sleep(Math.max(wait, due))
    }
  }

  /** One picture; returns how many milliseconds the next should wait besides. */
  async next() {
    await this.slots.take()
    let picture
    try {
      if (this.isPaused) return 0
      this.abort = new AbortController()
      picture = await api.picture(this.stage, { format: "jpeg", quality: 80, preview: true, ...this.wishes.form }, { signal: this.abort.signal })
    } catch (error) {
      if (error.name === "AbortError") return 0
      this.onWords(error.text ?? String(error))
      return 2000
    } finally {
      this.abort = null
      this.slots.give()
    }
    if (!picture) {
      this.onWords("No picture yet.")
      return 500
    }
    if (this.isClosed) return 0
    try {
      const bitmap = await createImageBitmap(picture.blob)
      this.onWords("")
      this.onPicture(bitmap, { width: bitmap.width, height: bitmap.height, frame: picture.frame, age: null })
      bitmap.close()
    } catch {
      this.onWords("The picture could not be decoded.")
      return 1000
    }
    return 0
  }
}
