// SPDX-License-Identifier: Apache-2.0

/// Decides for each frame what has to be covered, so that no raw face goes out when the detector is late, fails or
/// hangs.
///
/// A value without threads, pixels or a clock of its own. Fail-closed: anything but an answer for this very frame
/// covers all of it.
struct PrivacyGuard {
    /// What the search of the current frame gave.
    enum Look: Equatable {
        case answered
        /// It answered, and there are more faces than the stage can follow.
        case full
        case late, failed
    }

    /// What lies between the frame before and this one.
    enum Break: Equatable {
        case none
        /// Frames that the stage was not handed, a pause, or a step of time.
        case gap
        /// A change of the whole picture.
        case cut
    }

    /// How a frame went out. Each frame is counted under exactly one.
    enum Mode: Int, CaseIterable {
        /// Its own search answered, and saw each known face. It may have missed others, and it may have found none at
        /// all.
        case searched
        /// Its own search answered, and did not see each known face. That face is covered where it should be.
        case held
        /// Covered completely: no answer yet since the start or a cut.
        case starting
        /// Covered completely: the answer did not come in time.
        case late
        /// Covered completely: the detector failed.
        case failed
        /// Covered completely: its own search answered, and saw more faces than can be followed.
        case crowded

        /// The name in events and lines.
        var name: String { "\(self)" }
        var coversAll: Bool { self != .searched && self != .held }
    }

    /// A known face in this frame.
    struct Face: Equatable {
        var serial: Int
        var box: FaceRect
        /// Whether this frame's own search saw it.
        var isSeen: Bool
        /// Pixels a second.
        var velocityX: Double
        var velocityY: Double
        var speed: Double { (velocityX * velocityX + velocityY * velocityY).squareRoot() }
    }

    /// A face that is remembered.
    private struct Held {
        var face: Face
        /// When it was last known, nanoseconds.
        var since: Int64
        var isPresent: Bool
        /// Searches that did not find it, since it was last known or since the last cut or gap after that.
        var misses = 0
        /// What is covered: the face's box, and for some frames the box before, since a hand or a bar may have made
        /// it smaller.
        var cover: FaceRect
    }

    /// How long a lost face stays covered, nanoseconds of the frames' time. It stays in any case until ``leastMisses``
    /// searches after a cut or a gap have not found it: in a gap no time passes that anybody has seen.
    var holdTime: Int64
    private static let leastMisses = 3
    /// The most faces that are remembered, and the most regions.
    private static let mostHeld = 2 * FaceTracks.mostTracks
    static let mostRegions = mostHeld + FaceTracks.mostTracks
    /// A region grows by at least this share of its size in a second, and by no more than `mostGrowth` in all.
    private static let leastGrowth = 0.3
    private static let mostGrowth = 0.8
    /// An edge of a region moves in by this share of the way in each frame; it moves out at once.
    private static let shrinking = 0.1

    /// What to cover after ``decide(_:after:faces:time:)``, unless the mode covers all. Without margin.
    private(set) var regions: [FaceRect] = []
    /// The serial number of the face that each region belongs to.
    private(set) var serials: [Int] = []
    /// Frames by mode, in the order of `Mode`.
    private(set) var counts = [Int](repeating: 0, count: Mode.allCases.count)
    /// Frames that went out unchanged, since no face was found in them.
    private(set) var uncoveredCount = 0
    private var held: [Held] = []
    private var hasAnswer = false

    init(holdTime: Int64) {
        self.holdTime = holdTime
        regions.reserveCapacity(Self.mostRegions)
        serials.reserveCapacity(Self.mostRegions)
        held.reserveCapacity(Self.mostHeld)
    }

    /// Decides what is done with the frame of this time.
    ///
    /// - Parameters:
    ///   - pause: What lies before it.
    ///   - faces: All known faces, as they are in this frame.
    mutating func decide(_ look: Look, after pause: Break, faces: some Sequence<Face>, time: Int64) -> Mode {
        let isAnswered = look == .answered || look == .full
        if pause == .cut { hasAnswer = false }
        if isAnswered { hasAnswer = true }
        regions.removeAll(keepingCapacity: true)
        serials.removeAll(keepingCapacity: true)
        for index in held.indices {
            held[index].isPresent = false
            if pause != .none { held[index].misses = 0 }
        }
        var isAllSeen = true
        var isFull = look == .full
        for face in faces {
            serials.append(face.serial)
            if !face.isSeen { isAllSeen = false }
            if let index = held.firstIndex(where: { $0.face.serial == face.serial }) {
                let seconds = Double(max(time - held[index].since, 0)) / 1e9
                let moved = held[index].cover.moved(face.velocityX * seconds, face.velocityY * seconds)
                let cover = moved.reaching(face.box, share: Self.shrinking)
                held[index] = Held(face: face, since: time, isPresent: true, cover: cover)
                regions.append(cover)
            } else {
                if held.count < Self.mostHeld {
                    held.append(Held(face: face, since: time, isPresent: true, cover: face.box))
                } else {
                    isFull = true
                }
                regions.append(face.box)
            }
        }
        // Time that steps back is a new timeline: the time for which a face is held starts again.
        for index in held.indices where held[index].since > time { held[index].since = time }
        if isAnswered { for index in held.indices where !held[index].isPresent { held[index].misses += 1 } }
        let hold = holdTime
        held.removeAll { !$0.isPresent && $0.misses >= Self.leastMisses && time - $0.since > hold }
        for old in held where !old.isPresent {
            isAllSeen = false
            let seconds = Double(time - old.since) / 1e9
            let growth = max(old.face.speed / max(old.face.box.size, 1), Self.leastGrowth) * seconds
            regions.append(old.cover.grown(min(growth, Self.mostGrowth)))
            serials.append(old.face.serial)
        }
        let mode: Mode =
            switch look {
            case .answered, .full: isFull ? .crowded : isAllSeen ? .searched : .held
            case .failed: .failed
            case .late: hasAnswer ? .late : .starting
            }
        counts[mode.rawValue] += 1
        if !mode.coversAll, regions.isEmpty { uncoveredCount += 1 }
        return mode
    }

    /// Counts a frame as covered after all: nothing was found in it, but a later frame showed a face.
    mutating func wasCoveredLater() { uncoveredCount -= 1 }

    /// Counts a frame under another mode: a later frame showed that it must be covered completely.
    mutating func wasDecidedLater(_ mode: Mode, insteadOf old: Mode) {
        counts[old.rawValue] -= 1
        counts[mode.rawValue] += 1
    }
}
