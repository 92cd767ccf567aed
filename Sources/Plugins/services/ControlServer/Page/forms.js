// SPDX-License-Identifier: Apache-2.0

// A form made from the options of a stage type. Live options are fields, the others are shown.

import { make, setText } from "./dom.js"

const words = /^"[^"]*"(, "[^"]*")*$/

/** The words of a type such as `"contain", "fill"`; nil where it is another type. */
const wordsOf = (type) => (words.test(type) ? type.split(", ").map((word) => word.slice(1, -1)) : null)

/** A value as a person writes it into a text field. */
export const written = (value) => (value == null ? "" : typeof value === "string" ? value : JSON.stringify(value))

/** "#fff" as "#ffffff", which is all that a field for colours takes. */
const longColour = (text) => text.replace(/^#(.)(.)(.)$/, "#$1$1$2$2$3$3")

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b)

/** One option: its label, its field, what is said of it, what is wrong with it. */
class Field {
  constructor(option, value, id, choices) {
    this.option = option
    this.value = value
    this.isOptional = option.default === null
    this.fault = make("p", { class: "fault", id: `${id}-fault` })
    this.input = this.makeInput(id, choices)
    this.input.id = id
    this.input.setAttribute("aria-describedby", `${id}-help ${id}-fault`)
    const isCheck = option.type === "true or false"
    const label = make("label", { for: id, class: isCheck ? "check" : "" }, isCheck ? this.input : null, option.name)
    const range = option.minimum != null && option.maximum != null ? `${option.minimum}–${option.maximum}` : ""
    const unit = [range, option.unit].filter(Boolean).join(" ")
    this.element = make("div", { class: "field" },
      label, isCheck ? null : make("div", { class: "row" }, this.input, unit && make("span", { class: "quiet" }, unit)),
      make("p", { class: "help", id: `${id}-help` }, option.help), this.fault)
    this.show(value)
  }

  makeInput(id, choices) {
    const { type, minimum, maximum } = this.option
    if (type === "true or false" && !this.isOptional) return make("input", { type: "checkbox" })
    const list = choices ?? (type === "true or false" ? ["true", "false"] : wordsOf(type))
    if (list) {
      const names = this.isOptional ? ["", ...list] : list
      return make("select", {}, names.map((name) => make("option", { value: name }, name === "" ? "not set" : name)))
    }
    if (type === "integer" || type === "number") {
      return make("input", {
        type: "number", step: type === "integer" ? "1" : "any", inputmode: type === "integer" ? "numeric" : "decimal",
        min: minimum == null ? null : String(minimum), max: maximum == null ? null : String(maximum),
      })
    }
    if (type === "colour" && !this.isOptional) return make("input", { type: "color" })
    return make("input", { type: "text", spellcheck: "false", autocomplete: "off" })
  }

  show(value) {
    this.value = this.input.type === "color" ? longColour(written(value)) : value
    if (this.input.type === "checkbox") this.input.checked = value === true
    else {
      const text = written(this.value)
      // A value that is none of the choices stays visible.
      if (this.input.tagName === "SELECT" && ![...this.input.options].some((option) => option.value === text)) {
        this.input.append(make("option", { value: text }, text))
      }
      this.input.value = text
    }
  }

  /** What stands in the field, as JSON; throws the sentence that says why it is no value. */
  read() {
    const { type } = this.option
    if (this.input.type === "checkbox") return this.input.checked
    if (this.input.validity.badInput) throw "Write a number."
    const text = this.input.value
    if (text === "" && this.isOptional) return null
    if (type === "true or false") return text === "true"
    if (type === "integer" || type === "number") {
      if (text.trim() === "") throw "Write a number."
      return Number(text)
    }
    if (type === "string" || type === "colour" || type === "text with fields" || wordsOf(type)) return text
    // "3%", 12 and [1, 2] all are values of some types: what is JSON is taken as that.
    try {
      return JSON.parse(text)
    } catch {
      if (/^(object|list)/.test(type)) throw "Write JSON."
      return text
    }
  }

  get isChanged() {
    try {
      return !same(this.read(), this.value)
    } catch {
      return true
    }
  }

  complain(text) {
    setText(this.fault, text)
    if (text) this.input.setAttribute("aria-invalid", "true")
    else this.input.removeAttribute("aria-invalid")
  }
}

export class OptionForm {
  /** - options: those of the kind. - valueOf: the present value of one. - choices: lists of words by option's name.
   *  - apply: sends `{ name: value }`, resolves with the server's answer or throws its `Fault`. */
  constructor(options, valueOf, choices, apply) {
    this.valueOf = valueOf
    this.apply = apply
    this.fields = options.filter((option) => option.live).map((option) =>
      new Field(option, valueOf(option), `option-${option.name}`, choices[option.name]))
    const fixed = options.filter((option) => !option.live)
    this.said = make("p", { class: "said", role: "status" })
    this.fault = make("p", { class: "fault", role: "alert" })
    this.applyButton = make("button", { class: "main" }, "Apply")
    this.element = make("div", { class: "options" })
    if (this.fields.length > 0) {
      this.form = make("form", { novalidate: true, onsubmit: (event) => this.submit(event) },
        this.fields.map((field) => field.element), this.fault,
        make("div", { class: "row" }, this.applyButton,
          make("button", { type: "button", onclick: () => this.reset() }, "Undo"), this.said))
      this.element.append(this.form)
    } else {
      this.element.append(make("p", { class: "quiet" }, "No option of this stage can be changed while it runs."))
    }
    this.fixed = fixed.map((option) => ({ option, value: make("dd") }))
    if (fixed.length > 0) {
      this.element.append(make("details", {},
        make("summary", {}, `Fixed while it runs (${fixed.length})`),
        make("dl", { class: "fixed" }, this.fixed.map(({ option, value }) =>
          make("div", {}, make("dt", { title: option.help }, option.name), value)))))
    }
    this.refresh()
  }

  /** Values that have changed elsewhere; fields that somebody is changing here stay. */
  refresh() {
    for (const field of this.fields) if (!field.isChanged) field.show(this.valueOf(field.option))
    for (const { option, value } of this.fixed) {
      const text = written(this.valueOf(option))
      setText(value, text === "" ? "not set" : `${text}${option.unit ? ` ${option.unit}` : ""}`)
    }
  }

  reset() {
    this.clear()
    setText(this.said, "")
    for (const field of this.fields) field.show(this.valueOf(field.option))
  }

  clear() {
    setText(this.fault, "")
    for (const field of this.fields) field.complain("")
  }

  async submit(event) {
    event.preventDefault()
    this.clear()
    setText(this.said, "")
    const changed = {}
    const changedFields = this.fields.filter((field) => field.isChanged)
    let firstBad = null
    for (const field of changedFields) {
      try {
        changed[field.option.name] = field.read()
      } catch (sentence) {
        field.complain(String(sentence))
        firstBad ??= field
      }
    }
    if (firstBad) return firstBad.input.focus()
    if (changedFields.length === 0) return setText(this.said, "Nothing has been changed.")
    this.applyButton.disabled = true
    try {
      const answer = await this.apply(changed)
      for (const field of changedFields) field.value = changed[field.option.name]
      const names = Object.keys(changed).join(", ")
      setText(this.said, answer.frame == null ? `${names}: done.` : `${names}: in effect from frame ${answer.frame} on.`)
    } catch (fault) {
      this.showFault(fault)
    } finally {
      this.applyButton.disabled = false
    }
  }

  /** Each fault at the field that its place names, the rest below. */
  showFault(fault) {
    const faults = fault.faults?.length > 0 ? fault.faults : [fault]
    const rest = []
    let first = null
    for (const one of faults) {
      const place = String(one.place ?? "")
      const keys = place.split(/[.: [\]]+/)
      const field = keys.map((name) => this.fields.find((other) => other.option.name === name)).find(Boolean)
      if (!field) {
        rest.push(one.text ?? String(one))
        continue
      }
      const what = `${one.what}${/[.!?]$/.test(one.what) ? "" : "."}`
      // Which part of a list of objects it is: "areas[0].polygon[2]".
      const inside = place.indexOf(`${field.option.name}[`)
      const sentence = inside < 0 ? `${what.charAt(0).toUpperCase()}${what.slice(1)}` : `${place.slice(inside)}: ${what}`
      field.complain(`${sentence}${one.remedy ? ` ${one.remedy}` : ""}`)
      first ??= field
    }
    setText(this.fault, rest.join("\n"))
    first?.input.focus()
  }
}
