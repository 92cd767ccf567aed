// SPDX-License-Identifier: Apache-2.0

// The chain as a list: the same as the graph, for screen readers, keyboards and narrow screens.

import { make, setAttribute, setText } from "./dom.js"
import { count, list, mark, perSecond, time } from "./words.js"

const cells = ["state", "rate", "busy", "queue", "held", "lost"]

export class StageList {
  /** - onChoose: called with a stage's id. */
  constructor(table, onChoose) {
    this.body = table.tBodies[0]
    this.onChoose = onChoose
    this.rows = new Map()
  }

  /** Rows stay where their stage stays, so that the focus does. */
  show(structure) {
    const order = inOrder(structure)
    for (const [id, row] of this.rows) {
      if (!order.some((stage) => stage.id === id)) {
        row.element.remove()
        this.rows.delete(id)
      }
    }
    order.forEach((stage, index) => {
      const row = this.rows.get(stage.id) ?? this.add(stage)
      setText(row.use, ` ${stage.use}${stage.inserted ? ", inserted" : ""}`)
      setText(row.goesTo, stage.outputs.length > 0 ? list(stage.outputs) : "–")
      if (this.body.rows[index] !== row.element) this.body.insertBefore(row.element, this.body.rows[index] ?? null)
    })
  }

  add(stage) {
    const row = { use: make("span", { class: "quiet" }) }
    row.button = make("button", { type: "button", class: "link", onclick: () => this.onChoose(stage.id) }, stage.id)
    row.element = make("tr", {}, make("th", { scope: "row" }, row.button, row.use))
    for (const cell of cells) {
      row[cell] = make("td", { class: cell === "state" ? "state" : "number" })
      row.element.append(row[cell])
    }
    row.goesTo = make("td")
    row.element.append(row.goesTo)
    this.rows.set(stage.id, row)
    return row
  }

  update(model, chosen) {
    for (const stage of model.stages) {
      const row = this.rows.get(stage.id)
      if (!row) continue
      const worst = stage.notes[0]
      setAttribute(row.element, "data-level", worst?.level ?? "good")
      if (stage.id === chosen) setAttribute(row.button, "aria-current", "true")
      else row.button.removeAttribute("aria-current")
      const words = stage.notes.map((note) => note.word).join(", ")
      setText(row.state, words === "" || stage.state === "paused" ? `${mark(stage.state)} ${words || stage.state}` : `▲ ${words}`)
      setText(row.rate, perSecond(stage.rate))
      setText(row.busy, time(stage.busySeconds))
      const queues = stage.into.filter((link) => link.capacity > 0)
      setText(row.queue, queues.length > 0 ? queues.map((link) => `${link.depth}/${link.capacity}`).join(", ") : "–")
      setText(row.held, `${stage.held}/${stage.heldLimit}`)
      setText(row.lost, count(stage.lostInAll))
    }
  }

  focus(id) { this.rows.get(id)?.button.focus() }
}

/** Stages in the order in which frames reach them. */
function inOrder({ stages }) {
  const done = new Set()
  const order = []
  let rest = [...stages]
  while (rest.length > 0) {
    const next = rest.find((stage) => stage.inputs.every((id) => done.has(id))) ?? rest[0]
    done.add(next.id)
    order.push(next)
    rest = rest.filter((stage) => stage !== next)
  }
  return order
}
