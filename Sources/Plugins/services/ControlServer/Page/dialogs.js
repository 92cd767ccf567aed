// SPDX-License-Identifier: Apache-2.0

// Questions and the form of a new branch. Native dialogs: they keep the focus and close with Escape.

import { find, make, setText } from "./dom.js"

/** Buttons that close without an answer do not submit, so that no field's rule holds them. */
function withCancel(dialog) {
  find("button[value=no]", dialog)?.addEventListener("click", () => dialog.close("no"))
  return dialog
}

/** Asks; resolves with whether the answer is yes. */
export function ask(title, text, yes) {
  const dialog = find("#question")
  setText(find("#question-title"), title)
  setText(find("#question-text"), text)
  setText(find("button[value=yes]", dialog), yes)
  dialog.returnValue = "no"
  dialog.showModal()
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true })
  })
}

const ofPictures = [
  ["A recording", [{ use: "x264-encoder", preset: "veryfast" }, { use: "recorder", path: "branch-{n}.mp4" }]],
  ["An RTSP stream", [{ use: "x264-encoder", tune: "zerolatency" }, { use: "rtsp-sink", path: "/branch" }]],
  ["A sink that drops everything", [{ use: "null-sink" }]],
]
const ofUnits = [
  ["A recording", [{ use: "recorder", path: "branch-{n}.mp4" }]],
  ["An RTSP stream", [{ use: "rtsp-sink", path: "/branch" }]],
  ["A sink that drops everything", [{ use: "null-sink" }]],
]

const pretty = (stages) => `[\n${stages.map((stage) => `  ${JSON.stringify(stage)}`).join(",\n")}\n]`

/** Asks for the stages of a branch at `stage` and has it attached; the dialog stays open while the server refuses.
 *  - attach: sends the branch; throws a `Fault`. */
export function askForBranch(stage, attach) {
  const dialog = find("#branch")
  const [form, text, kind, copy, fault] = ["form", "#branch-stages", "#branch-kind", "#branch-copy", "#branch-fault"]
    .map((selector) => find(selector, dialog))
  const templates = stage.hasPictures ? ofPictures : ofUnits
  const submit = find("button.main", dialog)
  setText(find("#branch-text"), `The first stage takes what ${stage.id} gives. No other stage loses a frame.`)
  kind.replaceChildren(...templates.map(([name], index) => make("option", { value: String(index) }, name)))
  const fill = () => { text.value = pretty(templates[Number(kind.value)][1]) }
  kind.onchange = fill
  fill()
  copy.checked = false
  setText(fault, "")
  form.onsubmit = async (event) => {
    event.preventDefault()
    setText(fault, "")
    text.removeAttribute("aria-invalid")
    let stages
    try {
      stages = JSON.parse(text.value)
    } catch (error) {
      text.setAttribute("aria-invalid", "true")
      setText(fault, `The stages must be JSON: ${error.message}.`)
      return text.focus()
    }
    submit.disabled = true
    try {
      await attach({ at: stage.id, stages: Array.isArray(stages) ? stages : [stages], ...(copy.checked ? { copy: true } : {}) })
      dialog.close("yes")
    } catch (refused) {
      text.setAttribute("aria-invalid", "true")
      setText(fault, refused.text ?? String(refused))
      text.focus()
    } finally {
      submit.disabled = false
    }
  }
  dialog.showModal()
}

export function prepare() {
  for (const dialog of document.querySelectorAll("dialog")) withCancel(dialog)
}
