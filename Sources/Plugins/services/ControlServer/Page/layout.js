// SPDX-License-Identifier: Apache-2.0

// The places of a graph's nodes, from left to right, by Sugiyama's steps: layers, order within them, coordinates.
// Pure: knows nothing of the page.

const sweeps = 24
// Odd, so that the last one goes from left to right.
const passes = 9

/** - nodes: ids. - links: `{ from, to }` by id. - size: `{ width, height, gapX, gapY }`, pixels.
 *  Returns `{ width, height, nodes: Map(id → { x, y }), links: [[{ x, y }, …]] }`; x, y are upper left corners, a link's
 *  points lead from the right edge of one node to the left edge of the other. */
export function layOut(nodes, links, size) {
  const layerOf = findLayers(nodes, links)
  const graph = withDummies(nodes, links, layerOf)
  order(graph)
  return place(graph, nodes, links, size)
}

/** The layer of each node: one more than that of the last before it. Sources stand directly before their first reader. */
function findLayers(nodes, links) {
  const layerOf = new Map(nodes.map((id) => [id, 0]))
  const known = links.filter((link) => layerOf.has(link.from) && layerOf.has(link.to) && link.from !== link.to)
  // As many rounds as there are nodes suffice where there is no ring; a ring ends with them.
  for (let round = 0; round < nodes.length; round += 1) {
    let hasMoved = false
    for (const { from, to } of known) {
      const layer = layerOf.get(from) + 1
      if (layerOf.get(to) < layer && layer < nodes.length) {
        layerOf.set(to, layer)
        hasMoved = true
      }
    }
    if (!hasMoved) break
  }
  for (const id of nodes) {
    if (known.some((link) => link.to === id)) continue
    const after = known.filter((link) => link.from === id).map((link) => layerOf.get(link.to))
    if (after.length > 0) layerOf.set(id, Math.max(0, Math.min(...after) - 1))
  }
  return layerOf
}

/** Layers of items (nodes, and a dummy for each layer that a link passes), and what is beside each. */
function withDummies(nodes, links, layerOf) {
  const count = Math.max(0, ...nodes.map((id) => layerOf.get(id) + 1))
  const layers = Array.from({ length: count }, () => [])
  const items = new Map()
  const add = (layer, isDummy) => {
    const item = { layer, isDummy, before: [], after: [], y: 0 }
    layers[layer].push(item)
    return item
  }
  for (const id of nodes) items.set(id, add(layerOf.get(id), false))
  const ways = links.map(({ from, to }) => {
    const [start, end] = [items.get(from), items.get(to)]
    if (!start || !end || start.layer >= end.layer) return start && end ? [start, end] : []
    const way = [start]
    for (let layer = start.layer + 1; layer < end.layer; layer += 1) way.push(add(layer, true))
    way.push(end)
    for (let index = 1; index < way.length; index += 1) {
      way[index - 1].after.push(way[index])
      way[index].before.push(way[index - 1])
    }
    return way
  })
  return { layers, items, ways }
}

/** Orders each layer by the median of its neighbours, and keeps the order with the fewest crossings. */
function order({ layers }) {
  number(layers)
  let best = layers.map((layer) => [...layer])
  let fewest = crossings(layers)
  for (let sweep = 0; sweep < sweeps && fewest > 0; sweep += 1) {
    const isForward = sweep % 2 === 0
    const sequence = isForward ? layers.slice(1) : layers.slice(0, -1).reverse()
    for (const layer of sequence) {
      for (const item of layer) item.wish = median(isForward ? item.before : item.after, item.rank)
      layer.sort((a, b) => a.wish - b.wish || a.rank - b.rank)
      layer.forEach((item, rank) => { item.rank = rank })
    }
    const now = crossings(layers)
    if (now < fewest) {
      fewest = now
      best = layers.map((layer) => [...layer])
    }
  }
  best.forEach((layer, index) => { layers[index] = layer })
  number(layers)
}

function number(layers) {
  for (const layer of layers) layer.forEach((item, rank) => { item.rank = rank })
}

function median(items, own) {
  if (items.length === 0) return own
  const ranks = items.map((item) => item.rank).sort((a, b) => a - b)
  const middle = ranks.length >> 1
  return ranks.length % 2 ? ranks[middle] : (ranks[middle - 1] + ranks[middle]) / 2
}

export function crossings(layers) {
  let total = 0
  for (const layer of layers) {
    const pairs = layer.flatMap((item) => item.after.map((next) => [item.rank, next.rank]))
    for (let a = 0; a < pairs.length; a += 1) {
      for (let b = a + 1; b < pairs.length; b += 1) {
        if ((pairs[a][0] - pairs[b][0]) * (pairs[a][1] - pairs[b][1]) < 0) total += 1
      }
    }
  }
  return total
}

function place({ layers, items, ways }, nodes, links, { width, height, gapX, gapY }) {
  const room = (item) => (item.isDummy ? height / 3 : height)
  for (const layer of layers) {
    let y = 0
    for (const item of layer) {
      item.y = y + room(item) / 2
      y += room(item) + gapY
    }
  }
  for (let pass = 0; pass < passes; pass += 1) {
    const sequence = pass % 2 === 0 ? layers : [...layers].reverse()
    for (const layer of sequence) {
      const wishes = layer.map((item) => {
        const beside = [...item.before, ...item.after]
        return beside.length === 0 ? item.y : beside.reduce((sum, other) => sum + other.y, 0) / beside.length
      })
      settle(layer, wishes, room, gapY)
    }
  }
  const all = layers.flat()
  const top = Math.min(0, ...all.map((item) => item.y - room(item) / 2))
  for (const item of all) item.y -= top
  const x = (item) => item.layer * (width + gapX)
  return {
    width: Math.max(width, layers.length * (width + gapX) - gapX),
    height: Math.max(height, ...all.map((item) => item.y + room(item) / 2)),
    nodes: new Map(nodes.map((id) => [id, { x: x(items.get(id)), y: items.get(id).y - height / 2 }])),
    links: ways.map((way) => way.flatMap((item, index) => {
      const points = []
      if (index > 0) points.push({ x: x(item), y: item.y })
      if (index < way.length - 1) points.push({ x: x(item) + width, y: item.y })
      return points
    })),
  }
}

/** Moves a layer's items as near to their wishes as their order and room allow: neighbours that would overlap are joined
 *  to a block, which takes the mean of its wishes (pool adjacent violators). */
function settle(layer, wishes, room, gapY) {
  const blocks = []
  let offset = 0
  layer.forEach((item, index) => {
    if (index > 0) offset += (room(layer[index - 1]) + room(item)) / 2 + gapY
    let block = { sum: wishes[index] - offset, count: 1, items: [{ item, offset }] }
    while (blocks.length > 0 && blocks.at(-1).sum / blocks.at(-1).count > block.sum / block.count) {
      const before = blocks.pop()
      block = {
        sum: before.sum + block.sum, count: before.count + block.count, items: [...before.items, ...block.items],
      }
    }
    blocks.push(block)
  })
  for (const block of blocks) {
    for (const { item, offset } of block.items) item.y = block.sum / block.count + offset
  }
}
