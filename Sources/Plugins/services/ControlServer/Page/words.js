// SPDX-License-Identifier: Apache-2.0

// Numbers and states as people read them.

const marks = {
  stopped: "■", starting: "◌", streaming: "▶", rendering: "◉", paused: "‖", recovering: "↻", draining: "▷",
  finishing: "▷", failed: "✕",
}

/** The shape that stands beside a state's word, so that colour is never alone. */
export const mark = (state) => marks[state] ?? "?"

export const capital = (word) => word.charAt(0).toUpperCase() + word.slice(1)

/** 29.97 → "30.0", 1234.5 → "1235"; "–" for what is not known. */
export function short(value) {
  if (value == null || !Number.isFinite(value)) return "–"
  return value >= 100 ? value.toFixed(0) : value.toFixed(1)
}

export const perSecond = (value) => (value == null ? "–" : `${short(value)}/s`)

/** Seconds as "12 µs", "3.4 ms", "1.2 s". */
export function time(seconds) {
  if (seconds == null || !Number.isFinite(seconds)) return "–"
  if (seconds < 0.001) return `${(seconds * 1e6).toFixed(0)} µs`
  if (seconds < 1) return `${short(seconds * 1e3)} ms`
  return `${short(seconds)} s`
}

export const count = (value) => (value == null ? "–" : value.toLocaleString("en"))

/** "a", "a and b", "a, b and c". */
export function list(words) {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`
}

/** Time of day of an event: "14:05:09.331". */
export function clock(text) {
  const date = new Date(text)
  if (Number.isNaN(date.getTime())) return ""
  const two = (value) => String(value).padStart(2, "0")
  const milliseconds = String(date.getMilliseconds()).padStart(3, "0")
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${milliseconds}`
}
