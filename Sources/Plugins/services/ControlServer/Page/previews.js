// SPDX-License-Identifier: Apache-2.0

// Live pictures of stages, each with its own size, shape, rotation and rate.

import { find, make, setAttribute, setText } from "./dom.js"
import { PictureFeed } from "./feed.js"
import { saveSnapshot } from "./snapshot.js"
import { short } from "./words.js"

const usual = { size: 640, rate: 15, shape: "own", fit: "contain", rotate: 0, mirror: false, paused: false }
const most = 32
// Of the newest tile, for the ids of its fields.
let number = 0

const choices = {
  size: ["Size", [[320, "small (320)"], [640, "medium (640)"], [960, "large (960)"], [1280, "1280"], [1920, "1920"]]],
  rate: ["Rate", [[1, "1 per second"], [5, "5 per second"], [10, "10 per second"], [15, "15 per second"], [0, "every picture"]]],
  shape: ["Shape", [["own", "as the picture"], ["16:9", "16:9"], ["4:3", "4:3"], ["1:1", "1:1"], ["9:16", "9:16"]]],
  fit: ["Other shapes", [["contain", "all of it, on grey"], ["fill", "fill and crop"]]],
  rotate: ["Rotate", [[0, "not"], [90, "right"], [180, "upside down"], [270, "left"]]],
}

/** Of stored settings those that this page has: another version may have stored others. */
function known(stored) {
  const isKnown = (key) => choices[key]?.[1].some(([value]) => value === stored?.[key]) ?? typeof stored?.[key] === "boolean"
  return Object.fromEntries(Object.keys(usual).filter(isKnown).map((key) => [key, stored[key]]))
}

export class Previews {
  constructor(model, live) {
    this.model = model
    this.feed = new PictureFeed(live)
    this.tiles = []
    this.list = find("#tiles")
    this.select = find("#preview-stage")
    this.isRestored = false
    this.watcher = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const tile = this.tiles.find((other) => other.element === entry.target)
        if (tile) {
          tile.isInView = entry.isIntersecting
          tile.look()
        }
      }
    }, { rootMargin: "80px" })
    document.addEventListener("visibilitychange", () => { for (const tile of this.tiles) tile.look() })
    find("#add-preview").addEventListener("submit", (event) => {
      event.preventDefault()
      if (this.select.value) this.add(this.select.value)
    })
  }

  get key() { return `framehost-previews:${this.model.name}` }

  /** Stages that have pictures now; previews of others close. */
  show(structure) {
    const shown = structure.stages.filter((stage) => stage.hasPictures || stage.unitCodec)
    const stages = shown.map((stage) => stage.id)
    const chosen = this.select.value
    this.select.replaceChildren(...shown.map(({ id, unitCodec }) => make("option", { value: id }, unitCodec ? `${id} (${unitCodec})` : id)))
    if (stages.includes(chosen)) this.select.value = chosen
    find("#add-preview button").disabled = stages.length === 0
    for (const tile of [...this.tiles]) {
      // A stage of that id may give something else now.
      const stage = shown.find(({ id }) => id === tile.stage)
      if (!stage || stage.unitCodec !== tile.codec) this.remove(tile)
    }
    if (!this.isRestored) {
      this.isRestored = true
      this.restore(stages, structure)
    }
    this.update()
  }

  /** What was open when the page was last here; at the first time what the chain gives last. */
  restore(stages, structure) {
    let saved = null
    try {
      saved = JSON.parse(localStorage.getItem(this.key))
    } catch {
      // Of another version; the usual ones then.
    }
    if (Array.isArray(saved)) {
      for (const { stage, wishes } of saved.slice(0, most)) if (stages.includes(stage)) this.add(stage, known(wishes))
    } else {
      const last = structure.stages.filter((stage) => stage.hasPictures).at(-1)
      if (last) this.add(last.id)
    }
  }

  add(stage, wishes = {}) {
    if (this.tiles.length >= most) return
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches ? { rate: 1 } : {}
    const codec = this.model.find(stage)?.planned.unitCodec ?? null
    const tile = new Tile(stage, { ...usual, ...calm, ...wishes }, this, codec)
    this.tiles.push(tile)
    this.list.append(tile.element)
    this.watcher.observe(tile.element)
    this.save()
    this.update()
    return tile
  }

  remove(tile) {
    const index = this.tiles.indexOf(tile)
    this.watcher.unobserve(tile.element)
    tile.close()
    tile.element.remove()
    this.tiles.splice(index, 1)
    this.save()
    this.update()
    // The focus goes to what is beside.
    if (document.activeElement === document.body) (find("summary", this.tiles[index]?.element ?? this.list) ?? this.select).focus()
  }

  save() {
    localStorage.setItem(this.key, JSON.stringify(this.tiles.map(({ stage, wishes }) => ({ stage, wishes }))))
  }

  update() {
    for (const tile of this.tiles) tile.hide(this.model.hides(tile.stage))
    find("#no-previews").hidden = this.tiles.length > 0
    for (const tile of this.tiles) tile.update()
  }
}

class Tile {
  constructor(stage, wishes, previews, codec) {
    this.stage = stage
    // Of the stage's own access units, which are shown as they are: of the settings only those of the canvas hold.
    this.codec = codec
    this.number = (number += 1)
    this.wishes = wishes
    this.previews = previews
    this.isInView = false
    this.times = []
    this.canvas = make("canvas", { role: "img", width: 320, height: 180 })
    this.context = this.canvas.getContext("2d", { alpha: false })
    this.over = make("p", { class: "over" }, "Waiting for a picture.")
    this.figures = make("span", { class: "quiet figures" })
    this.pauseButton = make("button", { type: "button", onclick: () => this.set({ paused: !this.wishes.paused }) }, "Pause")
    this.snapshotButton = codec ? null : make("button", { type: "button", onclick: () => this.snapshot() }, "Snapshot")
    // Why its pictures are not for this page; "" if they are.
    this.why = ""
    this.isUnable = false
    this.fault = make("p", { class: "fault", role: "alert" })
    this.element = make("li", { class: "tile" },
      make("div", { class: "picture" }, this.canvas, this.over),
      make("div", { class: "row" }, make("strong", {}, stage), this.figures),
      make("div", { class: "row" }, this.pauseButton,
        this.snapshotButton,
        make("button", { type: "button", "aria-label": `Close the preview of ${stage}`, onclick: () => previews.remove(this) }, "Close")),
      make("details", {}, make("summary", {}, "Settings", make("span", { class: "unseen" }, ` of the preview of ${stage}`)),
        make("div", { class: "settings" }, Object.keys(choices).filter((key) => !codec || key === "rotate").map((key) => this.choice(key)), this.mirrorBox())),
      this.fault)
    this.viewer = previews.feed.open(stage, this, (...picture) => this.draw(...picture), (text) => this.say(text), (text) => this.giveUp(text))
    this.update()
  }

  choice(key) {
    const [name, values] = choices[key]
    const id = `preview-${this.number}-${key}`
    return make("div", {}, make("label", { for: id }, name), make("select", {
      id, onchange: (event) => {
        const found = values.find(([value]) => String(value) === event.target.value)
        this.set({ [key]: found[0] })
      },
    }, values.map(([value, text]) => make("option", { value: String(value), selected: value === this.wishes[key] }, text))))
  }

  mirrorBox() {
    return make("label", { class: "check" }, make("input", {
      type: "checkbox", checked: this.wishes.mirror, onchange: (event) => this.set({ mirror: event.target.checked }),
    }), "Mirror")
  }

  set(wishes) {
    Object.assign(this.wishes, wishes)
    this.previews.save()
    this.look()
    this.update()
  }

  // What the feed asks for. Rotation and mirroring are the canvas's: pictures of one size are encoded once for all.
  get rate() { return this.wishes.rate }

  get form() {
    const { size, shape, fit, rotate } = this.wishes
    const [, width, height] = /(\d+)x(\d+)/.exec(this.previews.model.find(this.stage)?.planned.output ?? "") ?? []
    // Larger than the picture is gives no more detail.
    const side = Math.min(size, Math.max(Number(width), Number(height)) || size)
    if (shape === "own") return Number(height) > Number(width) ? { height: side } : { width: side }
    const [across, down] = shape.split(":").map(Number)
    const scale = side / Math.max(across, down)
    const [w, h] = [Math.max(2, Math.round(across * scale)), Math.max(2, Math.round(down * scale))]
    return rotate % 180 ? { width: h, height: w, fit } : { width: w, height: h, fit }
  }

  /** Asks for pictures only while somebody sees them. */
  look() {
    const isSeen = this.isInView && !document.hidden && !this.wishes.paused && !this.why
    if (isSeen) this.viewer.resume()
    else this.viewer.pause()
  }

  draw(source, { width: across, height: down, frame, age, isMirrored = false, turns = 0, isMirroredInPreviews = false }) {
    const { rotate, mirror } = this.wishes
    const { canvas, context } = this
    const [width, height] = (rotate / 90 + turns) % 2 ? [down, across] : [across, down]
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width
      canvas.height = height
    }
    context.setTransform(mirror ? -1 : 1, 0, 0, 1, width / 2, height / 2)
    context.rotate((rotate * Math.PI) / 180)
    if (isMirroredInPreviews) context.scale(-1, 1)
    context.rotate((turns * Math.PI) / 2)
    if (isMirrored) context.scale(-1, 1)
    context.drawImage(source, -across / 2, -down / 2, across, down)
    const now = performance.now()
    this.times.push(now)
    while (now - this.times[0] > 3000) this.times.shift()
    this.frame = frame
    // Smoothed, so that the figure can be read.
    this.age = age == null ? null : this.age == null ? age : this.age + (age - this.age) / 8
  }

  /** Words in the picture's place, for as long as it is not for this page. */
  hide(why) {
    if (this.why === why) return
    const wasHidden = Boolean(this.why)
    this.why = why
    this.canvas.hidden = this.isUnable || why !== ""
    this.element.classList.toggle("unable", this.isUnable || why !== "")
    for (const button of [this.pauseButton, this.snapshotButton]) if (button) button.disabled = why !== ""
    this.look()
    if (why || wasHidden) this.say(why || "Waiting for a picture.")
    this.frame = this.age = null
    this.times = []
  }

  say(text) {
    // What a viewer says is of before.
    if (this.why && text !== this.why) return
    setText(this.over, text)
    this.over.hidden = text === ""
  }

  /** There will never be a picture. */
  giveUp(text) {
    this.isUnable = true
    this.say(text)
    this.element.classList.add("unable")
    this.canvas.hidden = this.pauseButton.hidden = true
    find("details", this.element).hidden = true
  }

  /** Words and figures; once a second. */
  update() {
    if (this.why) {
      setText(this.figures, "")
      setAttribute(this.canvas, "aria-label", `Preview of ${this.stage}: not shown`)
      return
    }
    const state = this.wishes.paused ? "preview paused" : this.previews.model.find(this.stage)?.live?.state ?? "waiting"
    setAttribute(this.canvas, "aria-label", `Preview of ${this.stage}: ${state}`)
    setText(this.pauseButton, this.wishes.paused ? "Play" : "Pause")
    setAttribute(this.pauseButton, "aria-label", `${this.wishes.paused ? "Play" : "Pause"} the preview of ${this.stage}`)
    const now = performance.now()
    while (this.times.length > 0 && now - this.times[0] > 3000) this.times.shift()
    const rate = this.times.length > 1 ? (this.times.length - 1) / ((this.times.at(-1) - this.times[0]) / 1000) : 0
    const parts = [
      this.frame == null ? null : `frame ${this.frame}`, this.wishes.paused ? "paused" : `${short(rate)}/s`,
      this.age == null || this.wishes.paused ? null : `${Math.max(0, this.age).toFixed(0)} ms`,
    ]
    setText(this.figures, parts.filter(Boolean).join(" · "))
    this.element.dataset.state = state
  }

  async snapshot() {
    setText(this.fault, "")
    const { rotate, mirror } = this.wishes
    try {
      await saveSnapshot(this.stage, "jpeg", { rotate: rotate || null, mirror })
    } catch (fault) {
      setText(this.fault, fault.text ?? String(fault))
    }
  }

  close() { this.viewer.close() }
}
