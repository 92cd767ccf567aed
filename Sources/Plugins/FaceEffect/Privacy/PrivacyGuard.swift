// SPDX-License-Identifier: Apache-2.0

/// Decides for each frame what has to be covered, so that no raw face goes out when the detector is late, fails or
/// hangs.
///
/// A value without threads, pixels or a clock of its own. Fail-closed: anything but an answer for this very frame
/// covers all of it.
struct PrivacyGuard {
    /// What the search of the current frame gave.
    enum Look: Equatable { case answered, late, failed }

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
        /// How many detections saw it: one that was seen often is held for longer.
        var seenCount: Int
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
        /// What is covered: the face's box, and for some frames the box before, since a hand or a bar may have made
        /// it smaller.
        var cover: FaceRect
    }

    /// How long a lost face stays covered, nanoseconds, if it was seen at least `fullHold` times. A face that was
    /// seen fewer times stays covered for a part of that.
    var holdTime: Int64
    private static let fullHold = 5
    /// A region grows by at least this share of its size in a second, and by no more than `mostGrowth` in all.
    private static let leastGrowth = 0.3
    private static let mostGrowth = 0.8
    /// An edge of a region moves in by this share of the way in each frame; it moves out at once.
    private static let shrinking = 0.1

    /// What to cover after ``decide(_:isCut:faces:time:)``, unless the mode covers all. Without margin.
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
        regions.reserveCapacity(2 * FaceTracks.mostTracks)
        serials.reserveCapacity(2 * FaceTracks.mostTracks)
        held.reserveCapacity(2 * FaceTracks.mostTracks)
    }

    private static func share(of holdTime: Int64, _ face: Face) -> Int64 {
        holdTime * Int64(min(face.seenCount, fullHold)) / Int64(fullHold)
    }

    /// Decides what is done with the frame of this time.
    ///
    /// - Parameter faces: All known faces, as they are in this frame.
    mutating func decide(_ look: Look, isCut: Bool, faces: some Sequence<Face>, time: Int64) -> Mode {
        if isCut { hasAnswer = false }
        let isNewScene = look == .answered && !hasAnswer
        if look == .answered { hasAnswer = true }
        regions.removeAll(keepingCapacity: true)
        serials.removeAll(keepingCapacity: true)
        for index in held.indices { held[index].isPresent = false }
        var isAllSeen = true
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
                if held.count < held.capacity {
                    held.append(Held(face: face, since: time, isPresent: true, cover: face.box))
                }
                regions.append(face.box)
            }
        }
        // Time that steps back is a new timeline: the time for which a face is held starts again.
        for index in held.indices where held[index].since > time { held[index].since = time }
        // In a new scene that has faces, those of the old one are gone. In one without, it may have been a flash.
        let forgets = isNewScene && !regions.isEmpty
        let hold = holdTime
        held.removeAll { !$0.isPresent && (forgets || time - $0.since > Self.share(of: hold, $0.face)) }
        for old in held where !old.isPresent {
            isAllSeen = false
            let seconds = Double(time - old.since) / 1e9
            let growth = max(old.face.speed / max(old.face.box.size, 1), Self.leastGrowth) * seconds
            regions.append(old.cover.grown(min(growth, Self.mostGrowth)))
            serials.append(old.face.serial)
        }
        let mode: Mode =
            switch look {
            case .answered: isAllSeen ? .searched : .held
            case .failed: .failed
            case .late: hasAnswer ? .late : .starting
            }
        counts[mode.rawValue] += 1
        if !mode.coversAll, regions.isEmpty { uncoveredCount += 1 }
        return mode
    }

    /// Counts a frame as covered after all: nothing was found in it, but a later frame showed a face.
    mutating func wasCoveredLater() { uncoveredCount -= 1 }
}
