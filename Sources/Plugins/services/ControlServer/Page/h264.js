// SPDX-License-Identifier: Apache-2.0

// H.264 as browsers take it: access units with start codes in, codec string and fragmented MP4 out. Pure.

/** The NAL units of an access unit with start codes (ITU-T H.264, Annex B), without them. */
export function nalUnits(bytes) {
  const found = []
  let start = -1
  let index = bytes.indexOf(1, 2)
  while (index > 0) {
    if (bytes[index - 1] === 0 && bytes[index - 2] === 0) {
      if (start >= 0) found.push(trimmed(bytes, start, index - 2))
      start = index + 1
    }
    index = bytes.indexOf(1, index + 1)
  }
  if (start >= 0) found.push(trimmed(bytes, start, bytes.length))
  return found.filter((unit) => unit.length > 0)
}

// Zeros before a start code belong to it.
function trimmed(bytes, start, end) {
  while (end > start && bytes[end - 1] === 0) end -= 1
  return bytes.subarray(start, end)
}

const typeOf = (unit) => unit[0] & 31
const two = (value) => value.toString(16).padStart(2, "0").toUpperCase()

/** `{ sps, pps, codec, width, height }` of a keyframe; null where it has no parameter sets. The SPS says what the stream
 *  is, whatever an encoder was told. */
export function parameters(units) {
  const sps = units.find((unit) => typeOf(unit) === 7)
  const pps = units.find((unit) => typeOf(unit) === 8)
  if (!sps || !pps || sps.length < 4) return null
  return { sps, pps, codec: `avc1.${two(sps[1])}${two(sps[2])}${two(sps[3])}`, ...size(sps) }
}

/** The bytes of a NAL unit without those that prevent start codes (7.4.1; H.265, 7.4.2). */
export function rbsp(bytes) {
  const kept = []
  for (let index = 0; index < bytes.length; index += 1) {
    if (index > 1 && bytes[index] === 3 && bytes[index - 1] === 0 && bytes[index - 2] === 0) continue
    kept.push(bytes[index])
  }
  return kept
}

/** Bits of an RBSP (7.3.1, 9.1). */
class Bits {
  constructor(bytes) {
    this.bytes = rbsp(bytes)
    this.at = 0
  }

  bit() {
    if (this.at >= this.bytes.length * 8) throw new Error("the parameter set is too short")
    const bit = (this.bytes[this.at >> 3] >> (7 - (this.at & 7))) & 1
    this.at += 1
    return bit
  }

  bits(count) {
    let value = 0
    for (let index = 0; index < count; index += 1) value = value * 2 + this.bit()
    return value
  }

  /** ue(v) */
  unsigned() {
    let zeros = 0
    while (this.bit() === 0) {
      zeros += 1
      if (zeros > 31) throw new Error("the parameter set has a number that is too large")
    }
    return 2 ** zeros - 1 + this.bits(zeros)
  }

  /** se(v) */
  signed() {
    const value = this.unsigned()
    return value % 2 ? (value + 1) / 2 : -value / 2
  }
}

const high = new Set([100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135])

/** Pixels of the shown picture (7.3.2.1.1, 7.4.2.1.1). */
function size(sps) {
  const bits = new Bits(sps.subarray(1))
  const profile = bits.bits(8)
  bits.bits(16)
  bits.unsigned()
  let chroma = 1
  if (high.has(profile)) {
    chroma = bits.unsigned()
    if (chroma === 3) bits.bit()
    bits.unsigned()
    bits.unsigned()
    bits.bit()
    if (bits.bit()) for (let list = 0; list < (chroma === 3 ? 12 : 8); list += 1) if (bits.bit()) scalingList(bits, list < 6 ? 16 : 64)
  }
  bits.unsigned()
  const order = bits.unsigned()
  if (order === 0) bits.unsigned()
  else if (order === 1) {
    bits.bit()
    bits.signed()
    bits.signed()
    for (let count = Math.min(bits.unsigned(), 255); count > 0; count -= 1) bits.signed()
  }
  bits.unsigned()
  bits.bit()
  const across = bits.unsigned() + 1
  const down = bits.unsigned() + 1
  const isProgressive = bits.bit()
  if (!isProgressive) bits.bit()
  bits.bit()
  const crop = bits.bit() ? [bits.unsigned(), bits.unsigned(), bits.unsigned(), bits.unsigned()] : [0, 0, 0, 0]
  const [stepX, stepY] = [chroma === 1 || chroma === 2 ? 2 : 1, (chroma === 1 ? 2 : 1) * (isProgressive ? 1 : 2)]
  return {
    width: across * 16 - (crop[0] + crop[1]) * stepX,
    height: down * 16 * (isProgressive ? 1 : 2) - (crop[2] + crop[3]) * stepY,
  }
}

function scalingList(bits, count) {
  let [last, next] = [8, 8]
  for (let index = 0; index < count; index += 1) {
    if (next !== 0) next = (last + bits.signed() + 256) % 256
    last = next === 0 ? last : next
  }
}

// --- ISO/IEC 14496-12 ---

export const timescale = 90_000

const u16 = (...values) => values.flatMap((value) => [(value >> 8) & 255, value & 255])
const u32 = (...values) => values.flatMap((value) => [(value >>> 24) & 255, (value >>> 16) & 255, (value >>> 8) & 255, value & 255])
const text = (value) => [...value].map((letter) => letter.charCodeAt(0))
const box = (type, ...parts) => {
  const body = parts.flat()
  return [...u32(body.length + 8), ...text(type), ...body]
}
const full = (type, flags, ...parts) => box(type, u32(flags), ...parts)
const unity = u32(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)

/** The init segment of a stream: one track, no duration, so that a browser takes it as live. */
export function initSegment({ sps, pps, width, height }) {
  const avcC = box("avcC", [1, sps[1], sps[2], sps[3], 0xff, 0xe1], u16(sps.length), [...sps], [1], u16(pps.length), [...pps])
  const avc1 = box("avc1", [0, 0, 0, 0, 0, 0], u16(1), u32(0, 0, 0, 0), u16(width, height), u32(0x480000, 0x480000, 0),
    u16(1), new Array(32).fill(0), u16(24, 0xffff), avcC)
  const table = box("stbl", full("stsd", 0, u32(1), avc1), full("stts", 0, u32(0)), full("stsc", 0, u32(0)),
    full("stsz", 0, u32(0, 0)), full("stco", 0, u32(0)))
  const media = box("mdia", full("mdhd", 0, u32(0, 0, timescale, 0), u16(0x55c4, 0)),
    full("hdlr", 0, u32(0), text("vide"), u32(0, 0, 0), [0]),
    box("minf", full("vmhd", 1, u32(0, 0)), box("dinf", full("dref", 0, u32(1), full("url ", 1))), table))
  const track = box("trak", full("tkhd", 3, u32(0, 0, 1, 0, 0, 0, 0), u16(0, 0, 0, 0), unity, u32(width << 16, height << 16)), media)
  return new Uint8Array([
    ...box("ftyp", text("iso5"), u32(0), text("iso5iso6mp41")),
    ...box("moov", full("mvhd", 0, u32(0, 0, timescale, 0, 0x10000), u16(0x100, 0), u32(0, 0), unity, u32(0, 0, 0, 0, 0, 0, 2)),
      track, box("mvex", full("trex", 0, u32(1, 1, 0, 0, 0)))),
  ])
}

// From the beginning of `moof` to the first byte of the picture, without an offset for reordering.
const headBytes = 108

/** A fragment with one picture. Times in ticks of `timescale`.
 *  - units: of the access unit; parameter sets and delimiters are left out.
 *  - reorder: PTS − DTS. */
export function fragment(number, units, { time, duration, reorder = 0, isKeyframe }) {
  const kept = units.filter((unit) => ![7, 8, 9].includes(typeOf(unit)))
  const bytes = kept.reduce((sum, unit) => sum + 4 + unit.length, 0)
  const more = reorder > 0 ? 4 : 0
  const flags = isKeyframe ? 0x02000000 : 0x01010000
  const traf = box("traf",
    full("tfhd", 0x020038, u32(1, duration, bytes, flags)),
    full("tfdt", 0x01000000, u32(Math.floor(time / 2 ** 32), time % 2 ** 32)),
    full("trun", more ? 0x000801 : 0x000001, u32(1, headBytes + more), more ? u32(reorder) : []))
  const moof = box("moof", full("mfhd", 0, u32(number)), traf)
  const result = new Uint8Array(moof.length + 8 + bytes)
  result.set(moof)
  result.set([...u32(8 + bytes), ...text("mdat")], moof.length)
  let at = moof.length + 8
  for (const unit of kept) {
    result.set(u32(unit.length), at)
    result.set(unit, at + 4)
    at += 4 + unit.length
  }
  return result
}
