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
        /// Whether that was elsewhere than where it was followed to: it may be another face, and the one of before may still
        /// be where it was.
        var hasJumped = false
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
        /// Where it was when a search last saw it, and when. What passes in front takes `cover` along, and not this.
        var seen: FaceRect
        var seenAt: Int64
        /// Searches that did not find it since then, or since the last break after that.
        var misses = 0
    }

    /// How long a lost face stays covered, nanoseconds of the frames' time. It stays in any case until ``leastMisses``
    /// searches after a break have not found it: in a gap no time passes that anybody has seen.
    var holdTime: Int64
    private static let leastMisses = 3
    /// The most faces that are remembered, and the most regions: for each what follows it, and where it was last seen.
    private static let mostHeld = 2 * FaceTracks.mostTracks
    static let mostRegions = 2 * mostHeld + FaceTracks.mostTracks
    /// A region grows by at least this share of its size in a second, and by no more than `mostGrowth` in all.
    private static let leastGrowth = 0.3
    private static let mostGrowth = 0.8
    /// An edge of a region moves in by this share of the way in a thirtieth of a second; it moves out at once.
    private static let shrinking = 0.1

    /// What to cover after ``decide(_:after:faces:time:)``, unless the mode covers all. Without margin.
    private(set) var regions: [FaceRect] = []
    /// The serial number of the face that each region belongs to; negative for the place that a face has jumped from.
    private(set) var serials: [Int] = []
    /// Frames that went out, by mode, in the order of `Mode`.
    private(set) var counts = [Int](repeating: 0, count: Mode.allCases.count)
    /// Frames that went out unchanged, since no face was found in them.
    private(set) var uncoveredCount = 0
    private var held: [Held] = []
    private var hasAnswer = false
    private var lastTime: Int64?
    private var nextGhost = -1
    /// Searches that answered since the last break.
    private var calmSearches = 0
    /// Whether an instance before this one may have known faces; what it knew is lost.
    private let followsAnother: Bool
    private var searches = 0
    private var firstTime: Int64?

    /// - Parameter followsAnother: Whether frames were searched before, by an instance that this one replaces. Everything is
    ///   then covered until a face of before would no longer be held.
    init(holdTime: Int64, followsAnother: Bool = false) {
        self.holdTime = holdTime
        self.followsAnother = followsAnother
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
        begin(pause, time)
        var isAllSeen = true
        var isFull = look == .full
        let step = Double(min(max(time - (lastTime ?? time), 0), 1_000_000_000)) / 1e9
        lastTime = time
        // 0.9 of the way stays in each thirtieth of a second.
        let share = 1 - Self.power(1 - Self.shrinking, step * 30)
        for face in faces {
            if !face.isSeen { isAllSeen = false }
            guard let index = held.firstIndex(where: { $0.face.serial == face.serial }) else {
                let new = Held(
                    face: face, since: time, isPresent: true, cover: face.box, seen: face.box, seenAt: time)
                if held.count < Self.mostHeld { held.append(new) } else { isFull = true }
                add(face.box, face.serial)
                continue
            }
            if face.hasJumped {
                if !leave(held[index]) { isFull = true }
                held[index].cover = face.box
            }
            let seconds = Double(max(time - held[index].since, 0)) / 1e9
            let moved = held[index].cover.moved(face.velocityX * seconds, face.velocityY * seconds)
            let cover = moved.reaching(face.box, share: face.isSeen ? share : 0)
            held[index].face = face
            held[index].cover = cover
            (held[index].since, held[index].isPresent) = (time, true)
            if face.isSeen { (held[index].seen, held[index].seenAt, held[index].misses) = (face.box, time, 0) }
            add(cover, face.serial)
        }
        if isAnswered {
            calmSearches += 1
            for index in held.indices where held[index].seenAt != time || !held[index].isPresent {
                held[index].misses += 1
            }
        }
        hold(time, &isAllSeen)
        return switch look {
        case .answered, .full: isFull ? .crowded : isSettling(time) ? .starting : isAllSeen ? .searched : .held
        case .failed: .failed
        case .late: hasAnswer ? .late : .starting
        }
    }

    private mutating func begin(_ pause: Break, _ time: Int64) {
        regions.removeAll(keepingCapacity: true)
        serials.removeAll(keepingCapacity: true)
        // Breaks that follow each other at once count as one: otherwise a hold would never end.
        let isBreak = pause != .none && calmSearches >= Self.leastMisses
        if pause != .none { calmSearches = 0 }
        for index in held.indices {
            held[index].isPresent = false
            if isBreak { held[index].misses = 0 }
            // Time that steps back is a new timeline: the time for which a face is held starts again.
            held[index].since = min(held[index].since, time)
            held[index].seenAt = min(held[index].seenAt, time)
        }
    }

    /// Covers what is no longer known, and where the faces that are only followed were last seen; forgets what is over.
    private mutating func hold(_ time: Int64, _ isAllSeen: inout Bool) {
        var index = 0
        while index < held.count {
            let old = held[index]
            let isDue = old.misses < Self.leastMisses
            let keepsPlace = isDue || time - old.seenAt <= holdTime
            if !old.isPresent {
                guard keepsPlace || time - old.since <= holdTime else {
                    held.swapAt(index, held.count - 1)
                    held.removeLast()
                    continue
                }
                isAllSeen = false
                add(grown(old.cover, old.face, time - old.since), old.face.serial)
            }
            if keepsPlace, old.seenAt != time, old.seen.union(old.cover) != old.cover {
                add(grown(old.seen, old.face, time - old.seenAt), old.face.serial)
            }
            index += 1
        }
    }

    private func grown(_ region: FaceRect, _ face: Face, _ age: Int64) -> FaceRect {
        let growth = max(face.speed / max(face.box.size, 1), Self.leastGrowth) * Double(age) / 1e9
        return region.grown(min(growth, Self.mostGrowth))
    }

    private mutating func add(_ region: FaceRect, _ serial: Int) {
        regions.append(region)
        serials.append(serial)
    }

    /// Keeps the place that a face has jumped from, as that of a face of its own; joined with a place that is kept already
    /// where they are about the same.
    ///
    /// - Returns: False where there is no room.
    private mutating func leave(_ old: Held) -> Bool {
        var ghost = old
        ghost.isPresent = false
        if let index = held.firstIndex(where: { $0.face.serial < 0 && $0.cover.overlap(old.cover) > 0.5 }) {
            held[index].cover = held[index].cover.union(old.cover)
            held[index].seen = held[index].seen.union(old.seen)
            held[index].since = max(held[index].since, old.since)
            held[index].seenAt = max(held[index].seenAt, old.seenAt)
            held[index].misses = min(held[index].misses, old.misses)
            return true
        }
        guard held.count < Self.mostHeld else { return false }
        ghost.face.serial = nextGhost
        (ghost.face.velocityX, ghost.face.velocityY) = (0, 0)
        nextGhost -= 1
        held.append(ghost)
        return true
    }

    /// Whether a face that an instance before this one knew would still be held.
    private mutating func isSettling(_ time: Int64) -> Bool {
        guard followsAnother, searches < Self.leastMisses || time - (firstTime ?? time) <= holdTime else {
            return false
        }
        searches += 1
        firstTime = min(firstTime ?? time, time)
        return true
    }

    /// `base` to the power of `exponent`, for bases of 0...1 and exponents of 0...30, without the mathematical library.
    private static func power(_ base: Double, _ exponent: Double) -> Double {
        var result = 1.0
        var rest = exponent
        while rest >= 1 {
            result *= base
            rest -= 1
        }
        // Straight between whole numbers.
        return result * (1 - rest * (1 - base))
    }

    /// Counts a frame that goes out. One that waits to be looked ahead may never do so.
    ///
    /// - Parameter isCovered: Whether anything in it is covered.
    mutating func count(_ mode: Mode, isCovered: Bool) {
        counts[mode.rawValue] += 1
        if !isCovered { uncoveredCount += 1 }
    }
}
