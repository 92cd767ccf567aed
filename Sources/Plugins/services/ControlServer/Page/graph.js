// SPDX-License-Identifier: Apache-2.0

// The chain as a graph, drawn from left to right. The list beside it says the same to those who do not see it.

import { draw, setAttribute, setText } from "./dom.js"
import { layOut } from "./layout.js"
import { shortFigures } from "./model.js"
import { mark } from "./words.js"

const size = { width: 176, height: 78, gapX: 64, gapY: 22 }
const margin = 10
// Share of its size to which the drawing may shrink.
const narrowest = 0.75
// Pixels between two links that end at the same stage.
const portDistance = 20

export class Graph {
  /** - onChoose: called with a stage's id. */
  constructor(container, onChoose) {
    this.container = container
    this.onChoose = onChoose
    this.nodes = new Map()
    this.links = new Map()
    this.key = null
  }

  /** Draws anew where the plan has changed. */
  show(structure) {
    if (this.key === structure.key) return
    this.key = structure.key
    this.nodes.clear()
    this.links.clear()
    const plan = layOut(structure.stages.map((stage) => stage.id), structure.links, size)
    const [width, height] = [plan.width + 2 * margin, plan.height + 2 * margin]
    const svg = draw("svg", {
      role: "img", viewBox: `${-margin} ${-margin} ${width} ${height}`, width, height, "aria-labelledby": "graph-name",
    }, draw("title", { id: "graph-name" }, "Graph of the chain. The list below has the same information as text."))
    spread(structure.links, plan.links)
    structure.links.forEach((link, index) => svg.append(this.link(link, plan.links[index])))
    for (const stage of structure.stages) svg.append(this.node(stage, plan.nodes.get(stage.id)))
    // Shrinks to the room there is as long as its text can be read, then scrolls.
    svg.style.maxWidth = `${width}px`
    svg.style.minWidth = `${Math.round(width * narrowest)}px`
    this.container.replaceChildren(svg)
  }

  link(link, points) {
    const label = draw("text", { class: "depth", "text-anchor": "middle" })
    const group = draw("g", { class: "link" }, draw("path", { d: curve(points) }))
    const end = points?.at(-1)
    if (end) {
      group.append(draw("path", { class: "tip", d: `M${end.x} ${end.y}l-8 -4.5v9z` }))
      // Beside the consumer, in whose queue they wait.
      label.setAttribute("x", end.x - 26)
      label.setAttribute("y", end.y - 8)
      group.append(label)
    }
    this.links.set(`${link.from}>${link.to}`, { group, label, queue: link.queue })
    return group
  }

  node(stage, { x, y }) {
    const text = (className, line, content) =>
      draw("text", { class: className, x: 12, y: 20 + 17 * line }, content)
    const parts = {
      group: draw("g", { class: "node", transform: `translate(${x} ${y})` }),
      sign: draw("text", { class: "sign", x: size.width - 12, y: 20, "text-anchor": "end" }),
      figures: text("figures", 2, "–"),
      note: text("note", 3, ""),
      format: cut(stage.output ?? "", 27),
    }
    parts.group.append(
      draw("rect", { width: size.width, height: size.height, rx: stage.kind === "filter" || stage.kind === "join" ? 10 : 4 }),
      draw("path", { class: "edge", d: edge(stage.kind) }),
      text("id", 0, cut(stage.id, 19)), text("use", 1, cut(stage.use, 25)), parts.sign, parts.figures, parts.note,
    )
    if (!stage.inserted) parts.group.classList.add("can-open")
    parts.group.addEventListener("click", () => this.onChoose(stage.id))
    this.nodes.set(stage.id, parts)
    return parts.group
  }

  /** Figures, colours and words; moves nothing. */
  update(model, chosen) {
    for (const stage of model.stages) {
      const node = this.nodes.get(stage.id)
      if (!node) continue
      const worst = stage.notes[0]
      setAttribute(node.group, "data-level", worst?.level ?? "good")
      node.group.classList.toggle("chosen", stage.id === chosen)
      setText(node.sign, mark(stage.state))
      setText(node.figures, shortFigures(stage))
      setText(node.note, worst ? `${worst.level === "rest" ? "" : "▲ "}${worst.word}` : node.format)
    }
    for (const link of model.links) {
      const drawn = this.links.get(link.key)
      if (!drawn) continue
      setText(drawn.label, drawn.queue > 0 ? `${link.depth}/${link.capacity}` : "")
      setAttribute(drawn.group, "data-level", link.full || link.lost > 0 ? "warn" : "good")
    }
  }
}

/** Links that end at the same stage end below each other, in the order in which they come. */
function spread(links, ways) {
  const byEnd = new Map()
  links.forEach((link, index) => {
    if (ways[index].length > 1) byEnd.set(link.to, [...(byEnd.get(link.to) ?? []), ways[index]])
  })
  for (const together of byEnd.values()) {
    together.sort((a, b) => a.at(-2).y - b.at(-2).y)
    const distance = Math.min(portDistance, (size.height - 16) / together.length)
    together.forEach((way, index) => { way.at(-1).y += (index - (together.length - 1) / 2) * distance })
  }
}

/** A path through points, bent where it turns. */
function curve(points) {
  if (!points || points.length === 0) return ""
  let path = `M${points[0].x} ${points[0].y}`
  for (let index = 1; index < points.length; index += 1) {
    const [from, to] = [points[index - 1], points[index]]
    const middle = (from.x + to.x) / 2
    path += index % 2 ? `C${middle} ${from.y} ${middle} ${to.y} ${to.x} ${to.y}` : `L${to.x} ${to.y}`
  }
  return path
}

/** The bar that tells kinds apart: at the left of a source, at the right of a sink, above else. */
function edge(kind) {
  const { width, height } = size
  if (kind === "source") return `M2.5 8V${height - 8}`
  if (kind === "sink") return `M${width - 2.5} 8V${height - 8}`
  return `M10 2.5H${width - 10}`
}

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text)
