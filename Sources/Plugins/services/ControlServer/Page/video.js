// SPDX-License-Identifier: Apache-2.0

// Shows an encoder's own access units: by WebCodecs, or H.264 by Media Source Extensions where a browser keeps that from
// pages without TLS.

import { fragment, initSegment, nalUnits, parameters, timescale } from "./h264.js"
import * as h265 from "./h265.js"

const MediaSourceType = globalThis.ManagedMediaSource ?? globalThis.MediaSource

/** A player for a preview, or null where the browser has no way.
 *  - kind: "h264" or "h265".
 *  - onPicture(source, width, height, head): draws what a canvas can draw, at once.
 *  - onShown(number): the message of that number, and all before it, have been shown.
 *  - onFault(text): it begins anew: `restart` the stream.
 *  - onUnable(codec): the browser has no decoder for the stream, whose codec string this is. */
export function makePlayer(kind, onPicture, onShown, onFault, onUnable) {
  if (globalThis.VideoDecoder) return kind === "h265" ? new DecodedH265(onPicture, onShown, onFault, onUnable) : new Decoded(onPicture, onShown, onFault)
  if (MediaSourceType && kind === "h264") return new Buffered(onPicture, onShown, onFault)
  return null
}

class Decoded {
  constructor(onPicture, onShown, onFault) {
    Object.assign(this, { onPicture, onShown, onFault })
    this.name = "WebCodecs"
    this.decoder = null
    this.codec = null
    this.heads = new Map()
  }

  take(head) {
    try {
      if (head.isKeyframe) this.prepare(head)
      // Nothing can be made of it without a keyframe before it.
      if (!this.decoder || this.decoder.state !== "configured" || (head.followsGap && !head.isKeyframe)) {
        this.onShown(head.number)
        return
      }
      this.heads.set(head.time, head)
      this.decoder.decode(new EncodedVideoChunk({ type: head.isKeyframe ? "key" : "delta", timestamp: head.time, data: head.payload }))
    } catch (error) {
      this.fail(error)
    }
  }

  prepare(head) {
    const found = this.parameters(nalUnits(head.payload))
    if (!found) return
    if (this.decoder?.state === "configured" && found.codec === this.codec) return
    this.reset()
    this.codec = found.codec
    this.decoder = new VideoDecoder({ output: (frame) => this.show(frame), error: (error) => this.fail(error) })
    this.decoder.configure({ codec: found.codec, optimizeForLatency: true })
  }

  parameters(units) { return parameters(units) }

  show(frame) {
    const head = this.heads.get(frame.timestamp)
    if (head) {
      this.heads.delete(frame.timestamp)
      this.onPicture(frame, frame.displayWidth, frame.displayHeight, head)
    }
    frame.close()
    if (head) this.onShown(head.number)
    // Of units that the decoder made nothing of.
    if (this.heads.size > 200) this.heads.clear()
  }

  fail(error) {
    this.reset()
    this.onFault(`The video could not be decoded: ${error.message}`)
  }

  reset() {
    if (this.decoder && this.decoder.state !== "closed") this.decoder.close()
    this.decoder = null
    this.heads.clear()
  }

  close() { this.reset() }
}

/** H.265, which not each browser has: it is asked for each stream. */
class DecodedH265 extends Decoded {
  constructor(onPicture, onShown, onFault, onUnable) {
    super(onPicture, onShown, onFault)
    this.onUnable = onUnable
    this.supported = null
    // Units that came while the browser was asked.
    this.waiting = null
    this.skipsLeading = false
  }

  parameters(units) { return h265.parameters(units) }

  take(head) {
    if (this.waiting) {
      this.waiting.push(head)
      return
    }
    const units = nalUnits(head.payload)
    const found = head.isKeyframe ? this.parameters(units) : null
    if (found && found.codec !== this.supported) {
      this.ask(found.codec, head)
      return
    }
    if (head.isKeyframe) this.skipsLeading = head.followsGap || this.decoder?.state !== "configured"
    else if (this.skipsLeading && h265.isSkippedLeading(units)) {
      this.onShown(head.number)
      return
    }
    super.take(head)
  }

  async ask(codec, head) {
    const waiting = this.waiting = [head]
    const { supported } = await VideoDecoder.isConfigSupported({ codec, optimizeForLatency: true }).catch(() => ({ supported: false }))
    if (this.waiting !== waiting) return
    this.waiting = null
    if (!supported) {
      this.onUnable(codec)
      return
    }
    this.supported = codec
    for (const one of waiting) this.take(one)
  }

  close() {
    this.waiting = null
    super.close()
  }
}

// Seconds.
const [farBehind, nearEnd, slack, fastest] = [1, 0.05, 0.03, 1.1]
// How much an element keeps ahead: more each time that it has run dry, less again after a while without that.
const [mostTarget, more, less, calm] = [0.5, 0.03, 0.01, 1]
const leastTarget = /Firefox/.test(navigator.userAgent) ? 0.1 : 0.03
const [kept, keptAtMost] = [10, 30]
// Ticks of a picture: a gap in the stream is no reason to stand still.
const [shortest, longest, usual] = [timescale / 1000, timescale / 10, timescale / 30]

class Buffered {
  constructor(onPicture, onShown, onFault) {
    Object.assign(this, { onPicture, onShown, onFault })
    this.name = "MSE"
    this.begin()
  }

  begin() {
    this.source = new MediaSourceType()
    this.buffer = null
    this.codec = null
    this.sps = ""
    // Appended when the buffer is free: bytes, and the message that they are of.
    this.pending = []
    this.appending = []
    // Where each picture lies on the element's time, the oldest first.
    this.places = []
    this.time = 0
    this.number = 0
    this.lastTime = null
    this.target = leastTarget
    this.changed = null
    const video = document.createElement("video")
    video.muted = true
    video.playsInline = true
    video.disableRemotePlayback = true
    // At the beginning everything waits.
    video.addEventListener("playing", () => { this.changed ??= performance.now() / 1000 }, { once: true })
    video.addEventListener("waiting", () => {
      if (this.changed == null) return
      this.target = Math.min(this.target + more, mostTarget)
      this.changed = performance.now() / 1000
    })
    video.addEventListener("error", () => this.fail(video.error))
    this.source.addEventListener("sourceopen", () => this.append())
    if (globalThis.ManagedMediaSource) video.srcObject = this.source
    else {
      this.url = URL.createObjectURL(this.source)
      video.src = this.url
    }
    this.video = video
    video.play().catch(() => {})
    this.watch()
  }

  /** Draws each picture that the element shows. */
  watch() {
    const { video } = this
    let last = -1
    const look = (time) => {
      if (this.video !== video) return
      if (time !== last) this.draw(time)
      last = time
      next()
    }
    const next = video.requestVideoFrameCallback
      ? () => video.requestVideoFrameCallback((_, { mediaTime }) => look(mediaTime))
      : () => requestAnimationFrame(() => look(video.currentTime))
    next()
  }

  draw(time) {
    while (this.places.length > 1 && this.places[1].at <= time + 0.001) this.places.shift()
    const [place] = this.places
    if (place && this.video.videoWidth > 0) this.onPicture(this.video, this.video.videoWidth, this.video.videoHeight, place.head)
  }

  take(head) {
    const units = nalUnits(head.payload)
    const bytes = []
    if (head.isKeyframe) {
      const found = parameters(units)
      if (found) {
        const sps = [...found.sps, ...found.pps].join()
        if (sps !== this.sps) bytes.push(initSegment(found))
        this.sps = sps
        this.wanted = found.codec
      }
    }
    if (!this.sps || (this.number === 0 && !head.isKeyframe)) {
      this.onShown(head.number)
      return
    }
    // Decode times without gaps: a picture lasts as long as the one before it did.
    const decodeTime = (head.time - head.reorder) * timescale / 1e6
    const since = this.lastTime == null ? usual : decodeTime - this.lastTime
    this.lastTime = decodeTime
    const duration = Math.round(Math.min(Math.max(since, shortest), longest))
    const reorder = Math.round(head.reorder * timescale / 1e6)
    this.number += 1
    bytes.push(fragment(this.number, units, { time: this.time, duration, reorder, isKeyframe: head.isKeyframe }))
    this.places.push({ at: (this.time + reorder) / timescale, head })
    if (this.places.length > 400) this.places.shift()
    this.time += duration
    this.pending.push({ bytes, number: head.number, codec: this.wanted })
    this.append()
  }

  append() {
    if (this.source.readyState !== "open" || this.buffer?.updating || this.pending.length === 0) return
    try {
      const type = (codec) => `video/mp4; codecs="${codec}"`
      if (!this.buffer) {
        this.codec = this.pending[0].codec
        this.buffer = this.source.addSourceBuffer(type(this.codec))
        this.buffer.mode = "segments"
        this.buffer.addEventListener("updateend", () => this.appended())
        this.buffer.addEventListener("error", () => this.fail(new Error("the browser refused the stream")))
      }
      if (this.pending[0].codec !== this.codec) {
        this.codec = this.pending[0].codec
        this.buffer.changeType?.(type(this.codec))
      }
      // All that waits and is of one kind, at once.
      let count = this.pending.findIndex((one) => one.codec !== this.codec)
      if (count < 0) count = this.pending.length
      this.appending = this.pending.splice(0, count)
      const parts = this.appending.flatMap((one) => one.bytes)
      const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
      let at = 0
      for (const part of parts) {
        all.set(part, at)
        at += part.length
      }
      this.buffer.appendBuffer(all)
    } catch (error) {
      this.fail(error)
    }
  }

  appended() {
    const last = this.appending.at(-1)
    this.appending = []
    if (last) this.onShown(last.number)
    try {
      this.steer()
    } catch {
      // The element was taken away.
    }
    this.append()
  }

  /** Keeps the element at the end of what it has. */
  steer() {
    const { buffered } = this.buffer
    if (buffered.length === 0) return
    const { video } = this
    const [begin, end] = [buffered.start(0), buffered.end(buffered.length - 1)]
    const ahead = end - video.currentTime
    const now = performance.now() / 1000
    if (this.changed != null && now - this.changed > calm) {
      this.target = Math.max(this.target - less, leastTarget)
      this.changed = now
    }
    if (ahead > farBehind) video.currentTime = end - nearEnd
    video.playbackRate = ahead > this.target + slack && ahead <= farBehind ? Math.min(1 + ahead - this.target, fastest) : 1
    if (video.paused) video.play().catch(() => {})
    if (!this.buffer.updating && video.currentTime - begin > keptAtMost) this.buffer.remove(0, video.currentTime - kept)
  }

  fail(error) {
    if (this.isClosed) return
    this.end()
    this.begin()
    this.onFault(`The video could not be shown: ${error?.message ?? "the browser gives no reason"}`)
  }

  end() {
    const { video } = this
    this.video = null
    video.pause()
    video.removeAttribute("src")
    video.srcObject = null
    if (this.url) URL.revokeObjectURL(this.url)
  }

  reset() {}

  close() {
    this.isClosed = true
    this.end()
  }
}
