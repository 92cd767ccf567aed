// SPDX-License-Identifier: Apache-2.0

// H.265 as WebCodecs takes it: access units with start codes, and a codec string. Pure.

import { rbsp } from "./h264.js"

const typeOf = (unit) => (unit[0] >> 1) & 63
const hex = (value) => value.toString(16).toUpperCase()

/** `{ codec }` of a keyframe; null where it has no SPS. */
export function parameters(units) {
  const sps = units.find((unit) => typeOf(unit) === 33)
  // The NAL unit's header has two bytes. Then come the VPS's number, the sub-layers and their nesting, a byte in all,
  // and `profile_tier_level` (7.3.2.2.1, 7.3.3).
  const bytes = sps ? rbsp(sps.subarray(2)) : []
  return bytes.length < 13 ? null : { codec: codecString(bytes.slice(1, 13)) }
}

/** The value of `codecs` for the first twelve bytes of `profile_tier_level` (ISO/IEC 14496-15, E.3). */
function codecString(bytes) {
  const space = ["", "A", "B", "C"][bytes[0] >> 6]
  const tier = bytes[0] & 32 ? "H" : "L"
  // The flag of profile 0 is the first bit there, and the lowest one here.
  let compatibility = 0
  for (let flag = 0; flag < 32; flag += 1) if ((bytes[1 + (flag >> 3)] >> (7 - (flag & 7))) & 1) compatibility += 2 ** flag
  const constraints = bytes.slice(5, 11)
  while (constraints.at(-1) === 0) constraints.pop()
  return [`hvc1.${space}${bytes[0] & 31}`, hex(compatibility), `${tier}${bytes[11]}`, ...constraints.map(hex)].join(".")
}

/** Whether it is a leading picture that cannot be decoded where decoding began at the keyframe before it (RASL). */
export function isSkippedLeading(units) {
  const slice = units.find((unit) => typeOf(unit) < 32)
  return slice != null && [8, 9].includes(typeOf(slice))
}
