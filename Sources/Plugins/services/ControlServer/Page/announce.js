// SPDX-License-Identifier: Apache-2.0

// What must be heard: one live region, at most one message a second (docs/design/021-live-operation.md).

import { find, setText } from "./dom.js"

const waiting = []
let timer = null

/** Reads `text` out; the same text is not queued twice. */
export function announce(text) {
  if (waiting.includes(text)) return
  // More than a few would still be read out minutes later.
  if (waiting.length >= 4) waiting.shift()
  waiting.push(text)
  timer ??= setTimeout(next, 50)
}

function next() {
  const text = waiting.shift()
  if (text === undefined) {
    timer = null
    return
  }
  setText(find("#announce"), text)
  timer = setTimeout(next, 1000)
}
