// Where previews get their pictures. One WebSocket for all of them takes this place later; the interface stays.

import { api, controlsUnderWay } from "./api.js"
import { sleep } from "./dom.js"

// Browsers open six connections to a server: events and figures need two of them, controls must never wait for pictures.
const mostInFlight = 4

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

/** Pictures by one request after the other: the answer to one asks for the next, so a slow page gets fewer and never
 *  old ones. */
export class PictureFeed {
  constructor() { this.slots = new Slots(mostInFlight) }

  /** - wishes: `{ form: { width, height, fit }, rate }`; read anew for each picture. rate 0: as many as there are.
   *  - onPicture: draws a bitmap, which is closed afterwards; the next one is asked for when it returns.
   *  - onWords: says why there is none; "" when there is one again.
   *  Returns `{ pause(), resume(), close() }`; begins paused. */
  open(stage, wishes, onPicture, onWords) {
    const viewer = new Viewer(stage, wishes, onPicture, onWords, this.slots)
    viewer.run()
    return viewer
  }
}

class Viewer {
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
      this.onPicture(bitmap, picture.frame)
      bitmap.close()
    } catch {
      this.onWords("The picture could not be decoded.")
      return 1000
    }
    return 0
  }
}
