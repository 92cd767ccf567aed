// SPDX-License-Identifier: Apache-2.0

// What the page knows of the chain: its structure (plan, chain file, stage types) and its figures, second by second.
// Pure: fetches nothing and draws nothing.

import { count, list, short, time } from "./words.js"

// Rates are of so many seconds: of one second alone they would jump by a frame.
const rateSeconds = 3
// What was lost so long ago no longer hurts.
const lossSeconds = 10
// A stage that holds all its buffers for so long, or a queue that is full so often, is where frames wait.
const holdSeconds = 1
const fullLooks = 3

// Drops that somebody has asked for: of a link that keeps the newest alone, of a filter, of a stage that is paused.
const wanted = new Set(["byStage", "paused", "detached", "unconnected", "stopped"])

const reasonWords = {
  noBuffer: "queue full or no free buffer", queueFull: "queue full", evicted: "queue full, oldest dropped",
  untilKeyframe: "until the next keyframe", damaged: "damaged", unmatched: "no match", failed: "stage failed",
  byStage: "by the stage", paused: "paused", detached: "branch removed",
  unconnected: "no stage takes them", stopped: "stopped",
}

export const reasonWord = (reason) => reasonWords[reason] ?? reason

const sum = (counts) => Object.values(counts ?? {}).reduce((total, value) => total + value, 0)
const unwanted = (counts) => sum(Object.fromEntries(Object.entries(counts ?? {}).filter(([key]) => !wanted.has(key))))

/** Past looks at one thing's counters. */
class History {
  constructor() { this.looks = [] }

  add(now, counters) {
    const last = this.looks.at(-1)
    // A counter that runs backwards is another stage's of the same name.
    if (last && Object.keys(counters).some((key) => counters[key] < last.counters[key])) this.looks = []
    this.looks.push({ now, counters })
    while (this.looks.length > 2 && now - this.looks[1].now >= lossSeconds) this.looks.shift()
  }

  /** How much a counter has risen within the last seconds, and in how many of them; null before there are two looks. */
  rise(key, seconds) {
    const last = this.looks.at(-1)
    const first = this.looks.find((look) => last.now - look.now <= seconds + 0.5)
    if (!first || first === last) return null
    return { by: last.counters[key] - first.counters[key], in: last.now - first.now }
  }

  rate(key) {
    const rise = this.rise(key, rateSeconds)
    return rise && rise.in > 0 ? rise.by / rise.in : null
  }

  /** The mean of a histogram's values of late; null where there were none. */
  mean(sumKey, countKey) {
    const [sums, counts] = [this.rise(sumKey, rateSeconds), this.rise(countKey, rateSeconds)]
    return sums && counts && counts.by > 0 ? sums.by / counts.by : null
  }
}

export class Model {
  constructor() {
    this.structure = null
    this.name = ""
    this.state = "starting"
    this.problems = []
    this.stages = []
    this.links = []
    this.histories = new Map()
    // Options that were set while the page was open, by stage: the chain file need not say them.
    this.set = new Map()
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

  /** - now: seconds of a clock that only rises. */
  takeFigures(status, figures, now) {
    this.state = status.state
    this.problems = status.problems ?? []
    this.name = status.name ?? this.name
    this.links = figures.links.map((link) => this.link(link, now))
    const states = new Map((status.stages ?? []).map((stage) => [stage.id, stage]))
    this.stages = figures.stages.map((stage) => this.stage(stage, states.get(stage.id), now))
    const current = new Set([...figures.links.map((link) => `${link.from}>${link.to}`),
      ...figures.stages.map((stage) => stage.id)])
    for (const key of this.histories.keys()) if (!current.has(key)) this.histories.delete(key)
  }

  history(key, now, counters) {
    if (!this.histories.has(key)) this.histories.set(key, new History())
    const history = this.histories.get(key)
    history.add(now, counters)
    return history
  }

  link(link, now) {
    const planned = this.structure?.links.find((other) => other.from === link.from && other.to === link.to)
    const isFull = link.capacity > 1 && link.depth >= link.capacity
    const history = this.history(`${link.from}>${link.to}`, now, {
      offered: link.offered, lost: unwanted(link.dropped), skipped: sum(link.dropped) - unwanted(link.dropped) + (link.replaced ?? 0),
    })
    const key = `${link.from}>${link.to}`
    const before = this.links.find((other) => other.key === key)
    const fullFor = isFull ? (before?.fullFor ?? 0) + 1 : 0
    return {
      ...link, key, whenFull: planned?.whenFull ?? "", rate: history.rate("offered"),
      lost: history.rise("lost", lossSeconds)?.by ?? 0, skipping: history.rate("skipped") ?? 0, isFull, fullFor,
    }
  }

  stage(figures, status, now) {
    const kind = figures.kind
    const busy = figures.busy
    const latency = figures.latency
    const history = this.history(figures.id, now, {
      frames: kind === "sink" ? figures.framesIn : figures.framesOut, lost: unwanted(figures.dropped),
      busySum: busy?.sumSeconds ?? 0, busyCount: busy?.count ?? 0,
      latencySum: latency?.sumSeconds ?? 0, latencyCount: latency?.count ?? 0,
    })
    const into = this.links.filter((link) => link.to === figures.id)
    const stage = {
      ...figures, state: status?.state ?? this.state, reason: status?.reason ?? "",
      rate: history.rate("frames"), busySeconds: history.mean("busySum", "busyCount"),
      latencySeconds: history.mean("latencySum", "latencyCount"),
      lost: (history.rise("lost", lossSeconds)?.by ?? 0) + into.reduce((total, link) => total + link.lost, 0),
      total: unwanted(figures.dropped) + into.reduce((total, link) => total + unwanted(link.dropped), 0),
      into,
    }
    stage.hurts = hurts(stage)
    return stage
  }

  get lost() {
    return this.stages.reduce((total, stage) => total + stage.lost, 0)
  }

  /** Frames a second of all sources. */
  get captured() {
    const rates = this.stages.filter((stage) => stage.kind === "source").map((stage) => stage.rate)
    return rates.some((rate) => rate != null) ? rates.reduce((total, rate) => total + (rate ?? 0), 0) : null
  }

  /** The longest time from capture to a sink, seconds. */
  get latency() {
    const times = this.stages.filter((stage) => stage.kind === "sink" && stage.latencySeconds != null)
    return times.length > 0 ? Math.max(...times.map((stage) => stage.latencySeconds)) : null
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

/** Where a stage hurts, the worst first: `{ level, word, text }`, level "bad", "warn" or "rest". */
export function hurts(stage) {
  const found = []
  const say = (level, word, text) => found.push({ level, word, text })
  if (stage.state === "failed") say("bad", "failed", "The stage has failed.")
  if (stage.state === "recovering") {
    say("warn", "recovering", stage.reason ? `It is recovering: ${stage.reason}` : "It is recovering.")
  }
  if (stage.lost > 0) {
    const reasons = [stage.dropped, ...stage.into.map((link) => link.dropped)].flatMap((counts) =>
      Object.keys(counts ?? {}).filter((reason) => !wanted.has(reason)))
    say("warn", `lost ${count(stage.lost)}`,
      `${stage.lost === 1 ? "1 frame was" : `${count(stage.lost)} frames were`} lost in the last ${lossSeconds} s (${list([...new Set(reasons)].map(reasonWord))}).`)
  }
  for (const link of stage.into) {
    if (link.fullFor >= fullLooks) {
      say("warn", "queue full", `The queue from ${link.from} has been full (${link.depth} of ${link.capacity}) for ${link.fullFor} s.`)
    }
  }
  if (stage.heldLimit > 0 && stage.held >= stage.heldLimit && stage.heldOldestSeconds >= holdSeconds
    && stage.state !== "paused") {
    say("warn", "held at limit",
      `It holds ${stage.held} of ${stage.heldLimit} buffers, the oldest for ${time(stage.heldOldestSeconds)}.`)
  }
  if (stage.state === "paused") say("rest", "paused", "The stage is paused.")
  return found
}

/** "30.0/s · 1.2 ms". */
export function shortFigures(stage) {
  const parts = [stage.rate == null ? "–" : `${short(stage.rate)}/s`]
  if (stage.busySeconds != null) parts.push(time(stage.busySeconds))
  return parts.join(" · ")
}
