// SPDX-License-Identifier: Apache-2.0

import CodedVideo
import FrameCore

/// Access units as viewers get them: with start codes (annex B of ITU-T H.264 and H.265), parameter sets before each
/// keyframe.
enum ViewerUnits {
    /// - Throws: ``FrameHostError`` `.invalidMedia` for sizes that do not fit the unit.
    static func annexB(_ unit: StageUnit, _ format: EncodedFormat) throws -> [UInt8] {
        var bytes = unit.bytes
        if format.framing == .lengthPrefixed {
            guard let units = bytes.withUnsafeBytes({ NALUnits.withStartCodes($0) }) else {
                throw FrameHostError(
                    .invalidMedia, what: "the sizes of the NAL units do not add up to their access unit",
                    remedy: "Report this to the author of the stage that gives them: it violates ISO/IEC 14496-15.")
            }
            bytes = units
        }
        guard unit.header.isKeyframe, !format.parameterSets.isEmpty, let coding = VideoCoding(format.codec) else {
            return bytes
        }
        let hasSet = bytes.withUnsafeBytes { UnitOutline($0, coding).has(.sequenceParameterSet) }
        return hasSet ? bytes : format.parameterSets + bytes
    }
}

/// Decides which units of a stream go to one viewer, which answers each unit when it has shown it. A late viewer only
/// gets units again from a keyframe on, since single units cannot be left out.
struct UnitFlow: Equatable {
    enum Verdict: Equatable {
        case send(followsGap: Bool)
        case leaveOut(wantsKeyframe: Bool)
    }

    /// The most units without an answer: a second of a fast stream, or a group that a viewer gets at its start.
    static let mostInFlight = 60
    static let mostBytes = 2 << 20
    /// How long an answer may take, nanoseconds.
    static let patience: Int64 = 500_000_000
    /// A late viewer has caught up when this many units are left.
    static let few = 2

    private struct Flying: Equatable {
        var number: UInt32
        var bytes: Int
        var at: Int64
    }

    private var flying: [Flying] = []
    private var bytesInFlight = 0
    private var waits = true
    private(set) var number: UInt32 = 0

    /// Decides about a unit of the stream. Where it is sent, its number is ``number``.
    ///
    /// - Parameter isCongested: Whether earlier bytes still wait for the client's socket.
    mutating func offer(
        isKeyframe: Bool, followsGap: Bool, bytes: Int, isCongested: Bool = false, now: Int64
    ) -> Verdict {
        if followsGap, !isKeyframe { waits = true }
        if isLate(now) || isCongested { waits = true }
        guard !isCongested else { return .leaveOut(wantsKeyframe: false) }
        guard !waits || isKeyframe && flying.count <= Self.few else {
            return .leaveOut(wantsKeyframe: !isKeyframe && flying.count <= Self.few)
        }
        defer { waits = false }
        number &+= 1
        flying.append(Flying(number: number, bytes: bytes, at: now))
        bytesInFlight += bytes
        return .send(followsGap: waits || followsGap)
    }

    private func isLate(_ now: Int64) -> Bool {
        guard let oldest = flying.first else { return false }
        return flying.count >= Self.mostInFlight || bytesInFlight >= Self.mostBytes
            || flying.count > Self.few && now - oldest.at > Self.patience
    }

    /// The viewer has shown this unit, and all before it.
    mutating func shown(_ number: UInt32) {
        guard let index = flying.lastIndex(where: { $0.number == number }) else { return }
        bytesInFlight -= flying[...index].reduce(0) { $0 + $1.bytes }
        flying.removeFirst(index + 1)
    }

    /// Starts again, without waiting for units under way.
    mutating func restart() {
        flying = []
        bytesInFlight = 0
        waits = true
    }
}
