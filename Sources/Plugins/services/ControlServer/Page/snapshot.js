// SPDX-License-Identifier: Apache-2.0

// A stage's next picture as a file of the person who asks.

import { api, Fault } from "./api.js"
import { make } from "./dom.js"

/** - kind: "jpeg" or "png". - form: rotate, mirror. Resolves with the file's name; throws a `Fault`. */
export async function saveSnapshot(stage, kind, form = {}) {
  const picture = await api.picture(stage, { format: kind, quality: 95, ...form }, { priority: "high" })
  if (!picture) {
    throw new Fault(204, "the stage has given no picture within a second", { place: stage, remedy: "Try again when the stage gives frames." })
  }
  const name = `${stage}${picture.frame == null ? "" : `-${picture.frame}`}.${kind === "png" ? "png" : "jpg"}`
  const address = URL.createObjectURL(picture.blob)
  make("a", { href: address, download: name }).click()
  // The browser has taken the bytes long before.
  setTimeout(() => URL.revokeObjectURL(address), 60_000)
  return name
}
