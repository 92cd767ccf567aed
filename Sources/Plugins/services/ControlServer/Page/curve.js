// SPDX-License-Identifier: Apache-2.0

// A figure as a curve of the last two minutes, with the line from which on it counts.

import { draw, make, setAttribute } from "./dom.js"

const seconds = 120
const [width, height] = [240, 48]

export class Curve {
  /** - name: of the figure. - line: the value from which on it counts; the curve shows up to three times as much. */
  constructor(name, line) {
    Object.assign(this, { name, line, values: [] })
    this.path = draw("polyline", { class: "curve-values" })
    const y = this.y(line)
    this.picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" },
      draw("line", { class: "curve-line", x1: 0, x2: width, y1: y, y2: y }), this.path)
    this.element = make("div", { class: "curve" }, this.picture)
  }

  /** Adds the value of a second. */
  add(value) {
    this.values.push(value)
    if (this.values.length > seconds) this.values.shift()
    const first = seconds - this.values.length
    const points = this.values.map((one, index) => `${((first + index) / (seconds - 1) * width).toFixed(1)},${this.y(one).toFixed(1)}`)
    setAttribute(this.path, "points", points.join(" "))
    setAttribute(this.picture, "aria-label", `${this.name} of the last two minutes: now ${value}, at most ${Math.max(...this.values)}; the line is at ${this.line}`)
  }

  y(value) { return height - 1 - Math.min(Math.max(value / this.line, 0), 3) / 3 * (height - 2) }
}
