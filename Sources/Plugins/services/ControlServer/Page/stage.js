// SPDX-License-Identifier: Apache-2.0

// One stage: what it is, its figures, what can be done with it, its options.

import { api } from "./api.js"
import { isAreas, openAreas } from "./areas.js"
import { Curve } from "./curve.js"
import { ask, askForBranch } from "./dialogs.js"
import { find, make, setAttribute, setText } from "./dom.js"
import { OptionForm } from "./forms.js"
import { reasonWord } from "./model.js"
import { saveSnapshot } from "./snapshot.js"
import { capital, count, list, mark, perSecond, time } from "./words.js"

const commandNames = { "recorder start": "Start recording", "recorder stop": "Stop recording" }

export class StagePanel {
  /** - previews: where a preview of the stage opens. - onChange: called after something was changed. */
  constructor(model, previews, onChange, onClose) {
    Object.assign(this, { model, previews, onChange, onClose })
    this.title = find("#stage-title")
    this.body = find("#stage-body")
    this.id = null
    this.key = null
  }

  /** Opens a stage, and moves the focus there. */
  open(id) {
    this.id = id
    this.key = null
    this.show()
    this.title.focus()
    this.title.scrollIntoView({ block: "nearest" })
  }

  close() {
    const id = this.id
    this.id = null
    setText(this.title, "Stage")
    this.body.replaceChildren(make("p", { class: "quiet" },
      "Choose a stage in the list to see its figures, options and commands here."))
    if (id) this.onClose(id)
  }

  /** Made anew where the stage is another; else its values are brought up to date. */
  show() {
    if (this.id == null) return
    const found = this.model.find(this.id)
    if (!found) return this.close()
    const { planned } = found
    const { onlyWatches } = this.model
    const hides = this.model.hides(planned.id)
    const key = JSON.stringify([planned.id, planned.use, planned.output, planned.inputs, planned.outputs, onlyWatches, hides])
    if (key !== this.key) {
      this.key = key
      this.build(planned)
    }
    this.planned = planned
    this.form?.refresh()
    this.update()
  }

  build(planned) {
    const kind = planned.kindInfo
    setText(this.title, planned.id)
    this.hurts = make("ul", { class: "hurts" })
    this.figures = make("dl", { class: "figures" })
    this.level = make("div", {})
    this.curve = null
    this.said = make("p", { class: "said", role: "status" })
    this.fault = make("p", { class: "fault", role: "alert" })
    this.form = null
    const parts = [
      make("p", {}, make("code", {}, planned.use), kind ? ` · ${kind.summary}` : planned.inserted ? " · inserted by the plan" : ""),
      make("p", { class: "quiet" }, this.neighbours(planned)),
      this.hurts, this.figures, this.level,
      Object.entries(this.reasons(planned)).filter(([, text]) => text).map(([id, text]) => make("p", { class: "quiet", id }, text)),
      this.buttons(planned), this.said, this.fault,
    ]
    if (kind?.commands.length > 0) parts.push(this.controls(this.commands(planned, kind)))
    if (kind?.options.length > 0) {
      const choices = { active: planned.use === "source-switch" ? planned.inputs : undefined }
      // The panel may show another stage by the time an answer comes.
      const apply = async (options) => {
        const answer = await api.set(planned.id, options)
        this.model.remember(planned.id, options)
        this.onChange()
        return answer
      }
      this.form = new OptionForm(kind.options, (option) => this.model.value(this.planned ?? planned, option), choices, apply)
      const drawn = kind.options.filter((option) => option.live && isAreas(option)).map((option) => make("button", {
        type: "button", onclick: () => this.drawAreas(planned, kind, option, apply) }, `Draw '${option.name}' over the picture…`))
      parts.push(make("h3", {}, "Options"), this.controls(make("div", {}, make("div", { class: "row" }, drawn), this.form.element)))
    }
    this.body.replaceChildren(...parts.flat())
  }

  /** Why some things are disabled here, by the id of their sentence. */
  reasons(planned) {
    const hides = planned.hasPictures || planned.unitCodec ? this.model.hides(planned.id) : ""
    return { "no-control": this.model.onlyWatches, "no-originals": hides }
  }

  /** What only those use who may control the chain. */
  controls(element) {
    if (this.model.may("control")) return element
    return make("fieldset", { class: "plain", disabled: true, "aria-describedby": "no-control" }, element)
  }

  drawAreas(planned, kind, option, apply) {
    const file = kind.options.find((other) => other.name === "areasFile")
    openAreas({
      stage: planned.id, source: planned.inputs[0] ?? null, option, apply, value: this.model.value(planned, option),
      isKept: Boolean(file && this.model.value(planned, file)),
    })
  }

  neighbours({ inputs, outputs, output }) {
    const parts = []
    if (inputs.length > 0) parts.push(`Takes what ${list(inputs)} ${inputs.length > 1 ? "give" : "gives"}.`)
    if (output) parts.push(`Gives ${output}${outputs.length > 0 ? ` to ${list(outputs)}` : ""}.`)
    return parts.join(" ")
  }

  buttons(planned) {
    const id = planned.id
    const button = (text, action, className) => make("button", { type: "button", class: className, onclick: action }, text)
    const reasons = this.reasons(planned)
    const unless = (reason, element) => {
      if (!reasons[reason]) return element
      element.disabled = true
      element.setAttribute("aria-describedby", reason)
      return element
    }
    this.pauseButton = unless("no-control", button("Pause", () => this.act(() =>
      (this.isPaused ? api.resume(id) : api.pause(id)), this.isPaused ? "resumed" : "paused")))
    const row = make("div", { class: "row" }, this.pauseButton)
    if (planned.inserted) this.pauseButton.hidden = true
    if (planned.hasPictures) {
      row.append(...[button("Preview", () => this.preview(id)), button("Snapshot (JPEG)", () => this.snapshot(id, "jpeg")),
        button("Snapshot (PNG)", () => this.snapshot(id, "png"))].map((one) => unless("no-originals", one)))
    } else if (planned.unitCodec) {
      row.append(unless("no-originals", button(`Preview (${planned.unitCodec})`, () => this.preview(id))))
    }
    if (planned.output && !planned.inserted) {
      row.append(unless("no-control", button("Add a branch…", () => askForBranch(planned, async (branch) => {
        const answer = await api.attach(branch)
        this.tell("The branch is attached", answer)
        this.onChange()
      }))))
    }
    if (planned.inputs.length > 0 && !planned.inserted) row.append(unless("no-control", button("Remove…", () => this.detach(id), "danger")))
    row.append(button("Close", () => this.close()))
    return row
  }

  commands(planned, kind) {
    const field = make("textarea", { rows: "2", spellcheck: "false", id: "arguments" })
    const rows = kind.commands.map((command) => {
      if (command.name === "switch" && planned.inputs.length > 0) return this.choice(planned, command)
      const name = commandNames[`${planned.use} ${command.name}`] ?? capital(command.name)
      const help = `command-${command.name}-help`
      return make("div", { class: "command" },
        make("button", { type: "button", "aria-describedby": help, onclick: () => this.act(() =>
          api.command(planned.id, command.name, this.arguments(field)), `'${command.name}' takes effect`) }, name),
        make("span", { class: "help", id: help }, command.summary))
    })
    return make("section", { "aria-label": "Commands" }, make("h3", {}, "Commands"), rows,
      make("details", {}, make("summary", {}, "Arguments for these commands"),
        make("label", { for: "arguments" }, "A JSON object, or nothing"), field))
  }

  arguments(field) {
    if (field.value.trim() === "") return {}
    try {
      return JSON.parse(field.value)
    } catch (error) {
      throw new Error(`The arguments must be a JSON object: ${error.message}.`)
    }
  }

  /** A button for each input of a switch. */
  choice(planned, command) {
    this.inputs = planned.inputs.map((input) => ({
      input, button: make("button", { type: "button", "aria-pressed": "false", onclick: () => this.act(() =>
        api.command(planned.id, command.name, { to: input }), `shows '${input}'`) }, input),
    }))
    return make("div", { class: "row", role: "group", "aria-label": "Input that is shown" },
      make("span", {}, "Show"), this.inputs.map(({ button }) => button))
  }

  async act(action, done) {
    setText(this.said, "")
    setText(this.fault, "")
    try {
      this.tell(capital(done), await action())
      this.onChange()
    } catch (fault) {
      setText(this.fault, fault.text ?? fault.message ?? String(fault))
    }
  }

  tell(done, answer) {
    setText(this.said, answer?.frame == null ? `${done}.` : `${done}, from frame ${answer.frame} on.`)
  }

  preview(id) {
    const tile = this.previews.add(id)
    tile?.element.scrollIntoView({ block: "nearest" })
    setText(this.said, tile ? "The preview is open." : "32 previews are open; close one of them first.")
  }

  snapshot(id, kind) {
    return this.act(async () => {
      const name = await saveSnapshot(id, kind)
      return { name }
    }, "the picture is in your downloads")
  }

  async detach(id) {
    const behind = this.model.behind(id)
    const ends = behind.length > 0 ? ` and what follows it (${list(behind)}) finish what they have and end` : " finishes what it has and ends"
    const yes = await ask(`Remove '${id}'?`, `'${id}'${ends}. The rest of the chain keeps running.`, "Remove")
    if (yes) await this.act(() => api.detach(id), `'${id}' has been removed`)
  }

  /** Figures; once a second. */
  update() {
    const live = this.id == null ? null : this.model.find(this.id)?.live
    if (!live) return
    this.isPaused = live.state === "paused"
    setText(this.pauseButton, this.isPaused ? "Resume" : "Pause")
    const rows = [["state", `${mark(live.state)} ${live.state}`], ["rate", perSecond(live.rate)]]
    if (live.busySeconds != null) rows.push(["busy per frame", time(live.busySeconds)])
    if (live.latencySeconds != null) rows.push(["since capture", time(live.latencySeconds)])
    if (live.kind !== "source") rows.push(["taken", count(live.framesIn)])
    if (live.kind !== "sink") rows.push(["given", count(live.framesOut)])
    for (const link of live.into.filter((other) => other.capacity > 0)) {
      rows.push([`queue from ${link.from}`, `${link.depth} of ${link.capacity}${link.whenFull ? `, ${link.whenFull}` : ""}`])
    }
    rows.push(["buffers held", `${live.held} of ${live.heldLimit}`])
    for (const counts of [live.dropped, ...live.into.map((link) => link.dropped)]) {
      for (const [reason, number] of Object.entries(counts ?? {})) rows.push([`dropped: ${reasonWord(reason)}`, count(number)])
    }
    const replaced = live.into.reduce((total, link) => total + (link.replaced ?? 0), 0)
    if (replaced > 0) rows.push(["replaced by newer ones", count(replaced)])
    rows.push(...ownFigures(live.figures))
    table(this.figures, rows)
    if (typeof live.figures?.level === "number") {
      // How near something is to what the stage looks for: 1 is there.
      if (!this.curve) this.level.append((this.curve = new Curve("level", 1)).element)
      this.curve.add(live.figures.level)
    }
    setAttribute(this.hurts, "data-count", String(live.notes.length))
    const texts = live.notes.map((note) => `${note.level === "rest" ? "" : "▲ "}${note.text}`)
    if (this.hurts.dataset.texts !== texts.join("\n")) {
      this.hurts.dataset.texts = texts.join("\n")
      this.hurts.replaceChildren(...texts.map((text, index) => make("li", { "data-level": live.notes[index].level }, text)))
    }
    for (const { input, button } of this.inputs ?? []) {
      setAttribute(button, "aria-pressed", String(live.figures?.active === input))
      const isLost = live.figures?.inputs?.[input] === "lost"
      setText(button, isLost ? `${input} (lost)` : input)
    }
  }
}

/** What a stage says of itself, its plain members alone. */
function ownFigures(figures) {
  return Object.entries(figures ?? {}).filter(([, value]) => ["string", "number", "boolean"].includes(typeof value))
    .slice(0, 24).map(([key, value]) => [key, typeof value === "number" ? count(value) : String(value)])
}

/** Rows of a description list; texts change in place. */
function table(list, rows) {
  while (list.children.length > rows.length) list.lastElementChild.remove()
  rows.forEach(([name, value], index) => {
    if (!list.children[index]) list.append(make("div", {}, make("dt"), make("dd")))
    setText(list.children[index].children[0], name)
    setText(list.children[index].children[1], value)
  })
}
