// SPDX-License-Identifier: Apache-2.0

// Areas of a picture, drawn over it with mouse, finger or keyboard: the option `areas` of `mask`, `ignore` of
// `motion-detect`. Coordinates are fractions of the upright picture.

import { api, Fault } from "./api.js"
import { draw, find, make, setText } from "./dom.js"

/** Units of the drawing across and down, whatever the picture's size is. */
const across = 1000
const covers = ["#000", "blur", "pixelate"]
const mostAreas = 64
const mostPoints = 64
const usualArea = [[0.4, 0.4], [0.6, 0.4], [0.6, 0.6], [0.4, 0.6]]

/** Whether an option is a list of such areas. */
export const isAreas = (option) =>
  /^list of object/.test(option.type) && (option.members ?? []).some((member) => member.name === "polygon")

const clamp = (value) => Math.min(1, Math.max(0, Math.round(value * 10000) / 10000))

/** Pictures, an overlay with the areas, and buttons. One dialog serves all stages. */
class AreasDialog {
  constructor() {
    this.dialog = find("#areas")
    this.image = find("#areas-picture", this.dialog)
    this.overlay = find("#areas-overlay", this.dialog)
    this.said = find("#areas-said", this.dialog)
    this.fault = find("#areas-fault", this.dialog)
    this.list = find("#areas-list", this.dialog)
    this.cover = find("#areas-cover", this.dialog)
    this.json = find("#areas-json", this.dialog)
    this.overlay.setAttribute("viewBox", `0 0 ${across} ${across}`)
    this.overlay.setAttribute("preserveAspectRatio", "none")
    this.overlay.addEventListener("pointerdown", (event) => this.press(event))
    this.overlay.addEventListener("pointermove", (event) => this.drag(event))
    for (const name of ["pointerup", "pointercancel"]) this.overlay.addEventListener(name, () => this.release())
    this.overlay.addEventListener("dblclick", () => this.close())
    this.overlay.addEventListener("keydown", (event) => this.key(event))
    const on = (id, action) => find(id, this.dialog).addEventListener("click", action)
    on("#areas-add", () => this.add())
    on("#areas-draw", () => this.begin())
    on("#areas-point", () => this.addPoint())
    on("#areas-remove", () => this.removeArea())
    this.cover.addEventListener("change", () => this.setCover(this.cover.value))
    this.dialog.addEventListener("close", () => this.end())
  }

  /** - stage: the id. - source: the stage before it, whose pictures show what is under the areas. - option: the areas'.
   *  - value: what they are. - isKept: whether the stage writes them into a file. - apply: sends the areas. */
  open({ stage, source, option, value, isKept, apply }) {
    Object.assign(this, { stage, source, option, apply, isKept })
    this.areas = structuredClone(value ?? [])
    this.hasCover = option.members.some((member) => member.name === "with")
    this.chosen = this.areas.length > 0 ? 0 : -1
    this.point = -1
    this.drawing = null
    this.held = null
    this.isSending = this.isStale = false
    setText(find("#areas-title", this.dialog), `Areas of ${stage}`)
    setText(this.said, "")
    setText(this.fault, "")
    find("#areas-cover-row", this.dialog).hidden = !this.hasCover
    find("#areas-kept", this.dialog).hidden = !isKept
    find("#areas-paste", this.dialog).hidden = isKept
    this.dialog.showModal()
    this.show()
    this.isOpen = true
    this.look()
  }

  end() {
    this.isOpen = false
    if (this.address) URL.revokeObjectURL(this.address)
    this.address = null
    this.image.removeAttribute("src")
  }

  /** A picture a second, of the stage before this one if its pictures are for this page. */
  async look() {
    while (this.isOpen) {
      const shown = this.source ?? this.stage
      try {
        const picture = await api.picture(shown, { format: "jpeg", width: 960 })
        if (!this.isOpen) return
        if (picture) {
          if (this.address) URL.revokeObjectURL(this.address)
          this.address = URL.createObjectURL(picture.blob)
          this.image.src = this.address
          this.image.alt = `A picture of ${shown}`
        }
      } catch (fault) {
        if (this.source) {
          // What lies under the areas is not for this page: what the stage gives is.
          this.source = null
          setText(this.said, `The picture is what ${this.stage} gives: ${fault.text ?? fault}`)
          continue
        }
        setText(this.fault, fault.text ?? String(fault))
      }
      await new Promise((resolve) => setTimeout(resolve, 1000))
    }
  }

  // What a pointer does

  at(event) {
    const box = this.overlay.getBoundingClientRect()
    return [clamp((event.clientX - box.left) / box.width), clamp((event.clientY - box.top) / box.height)]
  }

  press(event) {
    if (event.button > 0) return
    const place = this.at(event)
    const { area, point } = event.target.dataset
    this.overlay.setPointerCapture(event.pointerId)
    if (this.drawing) {
      // The first point again closes the outline.
      const box = this.overlay.getBoundingClientRect()
      const [x, y] = this.drawing[0] ?? place
      const isNear = Math.hypot((x - place[0]) * box.width, (y - place[1]) * box.height) < 14
      if (this.drawing.length >= 3 && (isNear || this.drawing.length === mostPoints)) return this.close()
      this.drawing.push(place)
      return this.show()
    }
    if (area === undefined) return
    this.choose(Number(area), point === undefined ? -1 : Number(point))
    this.held = { last: place, point: this.point, hasMoved: false }
  }

  drag(event) {
    if (!this.held) return
    const place = this.at(event)
    const move = [place[0] - this.held.last[0], place[1] - this.held.last[1]]
    this.held.last = place
    this.held.hasMoved = true
    this.move(this.held.point, move)
    this.show()
  }

  release() {
    const hasMoved = this.held?.hasMoved
    this.held = null
    if (hasMoved) this.send()
  }

  // What the keyboard does: an area or a point has the focus.

  key(event) {
    if (event.key === "Enter" && this.drawing) {
      event.preventDefault()
      return this.close()
    }
    if (event.key === "Escape" && this.drawing) {
      event.preventDefault()
      event.stopPropagation()
      this.drawing = null
      return this.show()
    }
    const { area, point } = event.target.dataset
    if (area === undefined) return
    const step = event.shiftKey ? 0.001 : 0.01
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] }
    if (moves[event.key]) {
      event.preventDefault()
      this.choose(Number(area), point === undefined ? -1 : Number(point))
      this.move(this.point, moves[event.key])
      this.show()
      this.send()
    } else if (event.key === "Delete" || event.key === "Backspace") {
      event.preventDefault()
      this.choose(Number(area), point === undefined ? -1 : Number(point))
      if (this.point >= 0) this.removePoint()
      else this.removeArea()
    }
  }

  // What changes

  choose(area, point) {
    const isOther = area !== this.chosen || point !== this.point
    this.chosen = area
    this.point = point
    if (isOther) this.show()
  }

  /** Moves a point, or with -1 the whole area as far as it stays in the picture. */
  move(point, [x, y]) {
    const polygon = this.areas[this.chosen]?.polygon
    if (!polygon) return
    if (point >= 0) {
      polygon[point] = [clamp(polygon[point][0] + x), clamp(polygon[point][1] + y)]
      return
    }
    const within = (step, index) => {
      const values = polygon.map((corner) => corner[index])
      return Math.min(1 - Math.max(...values), Math.max(-Math.min(...values), step))
    }
    const [right, down] = [within(x, 0), within(y, 1)]
    for (const corner of polygon) {
      corner[0] = clamp(corner[0] + right)
      corner[1] = clamp(corner[1] + down)
    }
  }

  add() {
    this.drawing = null
    this.insert(structuredClone(usualArea))
  }

  begin() {
    if (this.isFull()) return
    this.drawing = []
    setText(this.said, "Click or tap the corners one after the other; the first one again closes the outline.")
    this.show()
  }

  close() {
    const outline = this.drawing
    this.drawing = null
    // A double click has put the last corner twice.
    const corners = (outline ?? []).filter((corner, index) => index === 0 || String(corner) !== String(outline[index - 1]))
    if (corners.length >= 3) this.insert(corners)
    else this.show()
  }

  insert(polygon) {
    if (this.isFull()) return this.show()
    this.areas.push(this.hasCover ? { polygon, with: this.cover.value || covers[0] } : { polygon })
    this.choose(this.areas.length - 1, -1)
    this.show()
    this.focusChosen()
    this.send()
  }

  isFull() {
    if (this.areas.length < mostAreas) return false
    setText(this.fault, `There are ${mostAreas} areas; remove one first.`)
    return true
  }

  /** Between the chosen point, or the last, and the one behind it. */
  addPoint() {
    const polygon = this.areas[this.chosen]?.polygon
    if (!polygon || polygon.length >= mostPoints) return
    const before = this.point >= 0 ? this.point : polygon.length - 1
    const [a, b] = [polygon[before], polygon[(before + 1) % polygon.length]]
    polygon.splice(before + 1, 0, [clamp((a[0] + b[0]) / 2), clamp((a[1] + b[1]) / 2)])
    this.point = before + 1
    this.show()
    this.focusChosen()
    this.send()
  }

  removePoint() {
    const polygon = this.areas[this.chosen]?.polygon
    if (!polygon) return
    if (polygon.length <= 3) return this.removeArea()
    polygon.splice(this.point, 1)
    this.point = Math.min(this.point, polygon.length - 1)
    this.show()
    this.focusChosen()
    this.send()
  }

  removeArea() {
    if (this.chosen < 0) return
    this.areas.splice(this.chosen, 1)
    this.chosen = Math.min(this.chosen, this.areas.length - 1)
    this.point = -1
    this.show()
    this.focusChosen()
    this.send()
  }

  setCover(value) {
    if (this.chosen < 0) return
    this.areas[this.chosen].with = value
    this.show()
    this.send()
  }

  focusChosen() {
    const [area, point] = [String(this.chosen), String(this.point)]
    const shapes = [...this.overlay.querySelectorAll("[data-area]")]
    const found = shapes.find(({ dataset }) => dataset.area === area && (dataset.point ?? "-1") === point)
    ;(found ?? find("#areas-add", this.dialog)).focus()
  }

  /** One request at a time; what changed meanwhile goes with the next. */
  async send() {
    this.isStale = true
    if (this.isSending) return
    this.isSending = true
    try {
      while (this.isStale) {
        this.isStale = false
        const sent = structuredClone(this.areas)
        setText(this.fault, "")
        const answer = await this.apply({ [this.option.name]: sent })
        const from = answer.frame == null ? "" : ` from frame ${answer.frame} on`
        setText(this.said, `${sent.length === 1 ? "1 area is" : `${sent.length} areas are`} in effect${from}.`)
      }
    } catch (fault) {
      setText(this.said, "")
      setText(this.fault, fault instanceof Fault ? fault.text : String(fault))
    } finally {
      this.isSending = false
    }
  }

  // What is seen

  show() {
    const focused = document.activeElement?.dataset?.area === undefined ? null : { ...document.activeElement.dataset }
    const shapes = this.areas.flatMap((area, index) => this.shapes(area, index))
    if (this.drawing) {
      shapes.push(draw("polyline", { class: "outline", points: points(this.drawing) }),
        ...this.drawing.map(([x, y]) => draw("circle", { class: "corner", cx: x * across, cy: y * across, r: 9 })))
    }
    this.overlay.replaceChildren(...shapes)
    this.overlay.classList.toggle("drawing", this.drawing !== null)
    if (focused) {
      [...this.overlay.querySelectorAll("[data-area]")]
        .find(({ dataset }) => dataset.area === focused.area && dataset.point === focused.point)?.focus()
    }
    this.list.replaceChildren(...this.areas.map((area, index) => make("li", {}, make("button", {
      type: "button", "aria-pressed": String(index === this.chosen), onclick: () => { this.choose(index, -1); this.focusChosen() },
    }, `${index + 1}: ${area.polygon.length} corners${area.with ? `, ${area.with}` : ""}`))))
    const chosen = this.areas[this.chosen]
    for (const id of ["#areas-point", "#areas-remove"]) find(id, this.dialog).disabled = !chosen
    if (this.hasCover) {
      const present = chosen?.with ?? this.cover.value ?? covers[0]
      const values = covers.includes(present) || !present ? covers : [present, ...covers]
      this.cover.replaceChildren(...values.map((value) => make("option", { value }, value)))
      this.cover.value = present || covers[0]
    }
    this.json.value = JSON.stringify({ [this.option.name]: this.areas }).slice(1, -1)
  }

  shapes({ polygon }, index) {
    const isChosen = index === this.chosen
    const name = `area ${index + 1}`
    const body = draw("polygon", {
      class: isChosen ? "area chosen" : "area", points: points(polygon), "data-area": index, tabindex: "0", role: "button",
      "aria-label": `${name}, ${polygon.length} corners; arrow keys move it, Delete removes it`,
    })
    if (!isChosen) return [body]
    return [body, ...polygon.map(([x, y], corner) => draw("circle", {
      class: corner === this.point ? "corner chosen" : "corner", cx: x * across, cy: y * across, r: 11, "data-area": index,
      "data-point": corner, tabindex: "0", role: "button",
      "aria-label": `corner ${corner + 1} of ${name}: ${percent(x)} from the left, ${percent(y)} from the top`,
    }))]
  }
}

const points = (polygon) => polygon.map(([x, y]) => `${x * across},${y * across}`).join(" ")
const percent = (value) => `${Math.round(value * 1000) / 10} %`

let dialog = null

export function openAreas(wishes) {
  dialog ??= new AreasDialog()
  dialog.open(wishes)
}
