// SPDX-License-Identifier: Apache-2.0

// The page of the control server: what runs, live, and what can be done with it. docs/design/021-live-operation.md.

import { announce } from "./announce.js"
import { api, session } from "./api.js"
import { ask, prepare } from "./dialogs.js"
import { find, make, setAttribute, setText, sleep } from "./dom.js"
import { EventList } from "./events.js"
import { Graph } from "./graph.js"
import { StageList } from "./list.js"
import { Live } from "./live.js"
import { askForLogin } from "./login.js"
import { Model } from "./model.js"
import { Previews } from "./previews.js"
import { StagePanel } from "./stage.js"
import { capital, clock, count, mark, perSecond, time } from "./words.js"

const interval = 1000

class Page {
  constructor() {
    prepare()
    this.model = new Model()
    const choose = (id) => this.panel.open(id)
    this.live = new Live()
    this.previews = new Previews(this.model, this.live)
    this.graph = new Graph(find("#graph"), choose)
    this.list = new StageList(find("#list"), choose)
    this.panel = new StagePanel(this.model, this.previews, () => this.soon(), (id) => this.list.focus(id))
    this.events = new EventList(this.live, (event) => this.take(event))
    // The structure must be read: at the start, and when something says so.
    this.isStale = true
    this.lastMisfit = ""
    this.wake = () => {}
    this.lostSince = null
    // What the notice says: that the server is away, and for a while that the run could not be ended.
    this.lost = ""
    this.failed = ""
    this.failedTimer = null
    session.onUnauthorised = async (used, ways) => {
      await askForLogin(used, ways)
      // Another user may do something else.
      this.isStale = true
    }
    find("#sign-out").addEventListener("click", async () => {
      if (session.isSession(session.token)) await api.logOut().catch(() => {})
      session.token = null
      location.reload()
    })
    find("#drain").addEventListener("click", () => this.drain())
    document.addEventListener("visibilitychange", () => this.soon())
  }

  run() {
    this.events.run()
    this.poll()
  }

  /** Looks at once, not at the next second. */
  soon() { this.wake() }

  async poll() {
    for (;;) {
      const begin = performance.now()
      if (!document.hidden) await this.look()
      const rest = Math.max(100, interval - (performance.now() - begin))
      await Promise.race([sleep(rest), new Promise((resolve) => { this.wake = () => setTimeout(resolve, 100) })])
    }
  }

  async look() {
    try {
      const figures = await api.figures()
      const key = JSON.stringify([figures.stages.map((stage) => [stage.id, stage.use]), figures.links.map((link) => [link.from, link.to])])
      // Figures that never fit a plan are shown as they are; asking for it every second would help nobody.
      if (this.isStale || (!this.model.fits(figures) && key !== this.lastMisfit)) {
        this.isStale = false
        const [plan, chain, kinds] = [await api.plan(), await api.chain(), await api.kinds()]
        this.model.takeRights(await api.login(), await api.stages())
        this.model.takeStructure(plan, chain, kinds)
        this.lastMisfit = this.model.fits(figures) ? "" : key
        this.model.takeFigures(figures)
        this.graph.show(this.model.structure)
        this.list.show(this.model.structure)
        this.previews.show(this.model.structure)
        this.panel.show()
      } else {
        this.model.takeFigures(figures)
      }
      this.show()
      this.connected()
    } catch (fault) {
      // A structure that was half read is read again.
      this.isStale = true
      this.disconnected(fault)
    }
  }

  show() {
    const { model } = this
    const state = find("#state")
    setAttribute(state, "data-state", model.state)
    setText(find(".mark", state), mark(model.state))
    setText(find(".word", state), capital(model.state))
    setText(find("#name"), model.name)
    setText(find("#health"), model.problems.length === 0 ? "Healthy"
      : model.problems.length === 1 ? "1 problem" : `${model.problems.length} problems`)
    setAttribute(find("#health"), "data-level", model.problems.length === 0 ? "good" : "bad")
    document.title = `${model.name ? `${model.name}: ` : ""}${model.state} – framehost`
    setText(find("#captured"), perSecond(model.captured))
    setText(find("#latency"), time(model.latency))
    setText(find("#lost"), count(model.lost))
    find("#sign-out").hidden = !session.token
    this.showRights()
    find("#drain").disabled = !model.may("control") || !["streaming", "rendering", "paused", "recovering"].includes(model.state)
    this.showProblems()
    this.graph.update(model, this.panel.id)
    this.list.update(model, this.panel.id)
    this.panel.update()
    this.previews.update()
  }

  showRights() {
    const { login, onlyWatches } = this.model
    const [who, rights] = [find("#who"), find("#rights")]
    setText(who, login.name ?? "")
    who.hidden = login.name == null
    setText(rights, onlyWatches)
    rights.hidden = onlyWatches === ""
    if (onlyWatches) setAttribute(find("#drain"), "aria-describedby", "rights")
    else find("#drain").removeAttribute("aria-describedby")
  }

  showProblems() {
    const section = find("#problems")
    const list = find("ul", section)
    const shown = [...list.children].map((item) => item.textContent)
    const { problems } = this.model
    if (shown.join("\n") === problems.join("\n")) return
    for (const problem of problems) if (!shown.some((other) => alike(other, problem))) announce(problem)
    list.replaceChildren(...problems.map((problem) => make("li", {}, problem)))
    section.hidden = problems.length === 0
  }

  take(event) {
    if (event.event === "structure-changed") {
      this.isStale = true
      this.soon()
    }
    if (event.event === "option-changed" && event.stage && event.options) {
      this.model.remember(event.stage, event.options)
      if (event.stage === this.panel.id) this.panel.show()
    }
  }

  connected() {
    this.live.start()
    if (this.lostSince == null) return
    this.lostSince = null
    this.lost = ""
    this.showNotice()
    document.body.classList.remove("stale")
  }

  disconnected(fault) {
    this.lostSince ??= new Date().toISOString()
    const why = fault.status === 0 ? "The run has ended, or the network connection is lost." : (fault.text ?? String(fault))
    this.lost = `No figures since ${clock(this.lostSince).slice(0, 8)}. ${why} The page tries again every second.`
    this.showNotice()
    document.body.classList.add("stale")
  }

  showNotice() {
    const notice = find("#connection")
    setText(notice, [this.lost, this.failed].filter(Boolean).join(" "))
    notice.hidden = notice.textContent === ""
  }

  async drain() {
    const yes = await ask("End the run?", "The sources end, the frames in progress are finished, and files are closed. Then the program ends, and this page stops working.", "End the run")
    if (!yes) return
    try {
      await api.drain()
    } catch (fault) {
      this.failed = `"End the run" failed: ${fault.text ?? String(fault)}`
      // Screen readers miss the text of a notice that was hidden until now.
      announce(this.failed)
      this.showNotice()
      clearTimeout(this.failedTimer)
      this.failedTimer = setTimeout(() => {
        this.failed = ""
        this.showNotice()
      }, 15_000)
    }
  }
}

/** The same problem with another number in it. */
const alike = (a, b) => a.replace(/\d+/g, "") === b.replace(/\d+/g, "")

new Page().run()
