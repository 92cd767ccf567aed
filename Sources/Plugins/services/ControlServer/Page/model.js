// SPDX-License-Identifier: Apache-2.0

// What the page knows of the chain: its structure (plan, chain file, stage types) and its figures, second by second.
// The server computes the rates. Pure: fetches nothing and draws nothing.

import { short, time } from "./words.js"

const reasonWords = {
  noBuffer: "queue full or no free buffer", queueFull: "queue full", evicted: "queue full, oldest dropped",
  untilKeyframe: "until the next keyframe", damaged: "damaged", unmatched: "no match", failed: "stage failed",
  byStage: "by the stage", paused: "paused", detached: "branch removed",
  unconnected: "no stage takes them", stopped: "stopped", missed: "not made in time",
}

export const reasonWord = (reason) => reasonWords[reason] ?? reason

// Of a stage that came after the rates were computed.
const nothing = { rate: null, busySeconds: null, latencySeconds: null, lost: 0, lostInAll: 0, notes: [] }

export class Model {
  constructor() {
    this.structure = null
    this.name = ""
    this.state = "starting"
    this.problems = []
    this.stages = []
    this.links = []
    this.captured = null
    this.latency = null
    // Options that were set while the page was open, by stage: the chain file need not say them.
    this.set = new Map()
    // What this page may do, before the server has said it: all, since the server refuses what it may not.
    this.login = { by: "nobody", name: null, rights: ["watch", "control", "originals"] }
    this.bare = new Set()
  }

  /** - login: who this page is. - stages: the short list, which says what shows originals. */
  takeRights(login, stages) {
    this.login = login
    this.bare = new Set(stages.filter((stage) => stage.showsOriginals).map((stage) => stage.id))
  }

  may(right) { return this.login.rights.includes(right) }

  /** Why pictures of a stage are not for this page; "" if they are. */
  hides(id) {
    if (!this.bare.has(id) || this.may("originals")) return ""
    return `This stage shows what a stage with privacy behind it covers. Looking at it needs the right “originals”, which ${this.whoLacks}.`
  }

  /** Why this page may not change anything; "" if it may. */
  get onlyWatches() {
    return this.may("control") ? "" : `You may watch this chain and not control it: that needs the right “control”, which ${this.whoLacks}.`
  }

  get whoLacks() {
    const { by, name } = this.login
    return by === "user" ? `the user ${name} does not have` : by === "token" ? "the token does not have" : "nobody has without a login"
  }

  /** Plan, chain file and kinds; figures of stages that are gone are forgotten. */
  takeStructure(plan, chain, kinds) {
    // The chain that was just read has the live options in it.
    this.set.clear()
    const asked = new Map((chain.stages ?? []).map((stage, index) => [stage.id ?? `${stage.use}${index}`, stage]))
    const planned = plan.stages ?? []
    // A stage without an id is named by the plan; both lists have the same order, but for what the plan inserts.
    const unnamed = (chain.stages ?? []).filter((stage) => stage.id == null)
    for (const stage of planned) {
      if (asked.has(stage.id) || stage.inserted) continue
      const index = unnamed.findIndex((other) => other.use === stage.use)
      if (index >= 0) asked.set(stage.id, unnamed.splice(index, 1)[0])
    }
    this.name = chain.name ?? this.name
    this.structure = {
      stages: planned.map((stage) => ({
        ...stage, asked: asked.get(stage.id) ?? {}, kindInfo: kinds[stage.use] ?? null,
        inputs: (plan.links ?? []).filter((link) => link.to === stage.id).map((link) => link.from),
        outputs: (plan.links ?? []).filter((link) => link.from === stage.id).map((link) => link.to),
        hasPictures: hasPictures(stage.output), unitCodec: unitCodec(stage.output),
      })),
      links: plan.links ?? [],
      warnings: plan.warnings ?? [],
      // Two plans with the same key are drawn alike.
      key: JSON.stringify([planned.map((stage) => [stage.id, stage.use, stage.output]),
        (plan.links ?? []).map((link) => [link.from, link.to, link.queue, link.whenFull])]),
    }
    const ids = new Set(planned.map((stage) => stage.id))
    for (const id of this.set.keys()) if (!ids.has(id)) this.set.delete(id)
  }

  /** Whether the figures are of another chain than the structure: something was attached, detached, replaced. */
  fits(figures) {
    if (!this.structure) return false
    const key = (stages, links) => JSON.stringify([
      stages.map((stage) => `${stage.id}:${stage.use}`).sort(), links.map((link) => `${link.from}>${link.to}`).sort(),
    ])
    return key(figures.stages, figures.links) === key(this.structure.stages, this.structure.links)
  }

  /** - figures: what the server counts, and the rates that it has computed. */
  takeFigures(figures) {
    const { rates } = figures
    this.state = rates.state
    this.problems = rates.problems
    this.name = rates.name
    this.captured = rates.captured
    // The longest time from capture to a sink, seconds.
    this.latency = rates.latency?.seconds ?? null
    const same = (link) => (other) => other.from === link.from && other.to === link.to
    this.links = figures.links.map((link) => ({
      ...link, ...rates.links.find(same(link)), key: `${link.from}>${link.to}`,
      whenFull: this.structure?.links.find(same(link))?.whenFull ?? "",
    }))
    this.stages = figures.stages.map((stage) => ({
      ...nothing, ...stage, state: this.state, ...rates.stages.find((other) => other.id === stage.id),
      into: this.links.filter((link) => link.to === stage.id),
    }))
  }

  get lost() {
    return this.stages.reduce((total, stage) => total + stage.lost, 0)
  }

  /** The stage of the structure with its newest figures. */
  find(id) {
    const planned = this.structure?.stages.find((stage) => stage.id === id)
    if (!planned) return null
    return { planned, live: this.stages.find((stage) => stage.id === id) ?? null }
  }

  /** The value that an option has now. */
  value(planned, option) {
    const set = this.set.get(planned.id)
    if (set && option.name in set) return set[option.name]
    const asked = planned.asked[option.name]
    return asked === undefined ? option.default : asked
  }

  remember(id, options) {
    this.set.set(id, { ...this.set.get(id), ...options })
  }

  /** All stages that take what `id` gives, near and far: what goes with it when it is taken away. */
  behind(id) {
    const gone = []
    const open = [id]
    while (open.length > 0) {
      for (const next of this.structure?.stages.find((stage) => stage.id === open[0])?.outputs ?? []) {
        if (next !== id && !gone.includes(next)) {
          gone.push(next)
          open.push(next)
        }
      }
      open.shift()
    }
    return gone
  }
}

/** A raw picture's format begins with its pixel format and size: "i420 1280x720 30 fps"; H.264 does not. */
export function hasPictures(output) {
  return typeof output === "string" && /^[a-z][a-z0-9]* \d+x\d+/.test(output)
}

/** The codec of access units that browsers may take: "H.264" of "H.264 1280x720 30 fps"; null of anything else. */
export function unitCodec(output) {
  return typeof output === "string" ? /^(H\.26[45]) \d+x\d+/.exec(output)?.[1] ?? null : null
}

/** "30.0/s · 1.2 ms". */
export function shortFigures(stage) {
  const parts = [stage.rate == null ? "–" : `${short(stage.rate)}/s`]
  if (stage.busySeconds != null) parts.push(time(stage.busySeconds))
  return parts.join(" · ")
}
