// SPDX-License-Identifier: Apache-2.0

/// Something that may move through the scene, followed from picture to picture.
struct MotionTrack: Sendable {
    var id: UInt32
    var box: CellBox
    /// Nanoseconds: first and last seen.
    var since: Int64
    var seen: Int64
    /// Cells that move, smoothed.
    var cells: Float
    /// Where its middle was at first.
    var origin: SIMD2<Float>
    /// How far its middle has been from there, in cells.
    var way: Float = 0
    /// How long the path of its middle was, in cells.
    var path: Float = 0
    /// Seconds in which it was seen.
    var seenSeconds: Float = 0
    /// Whether it is motion: it was seen long enough, is large enough and went far enough.
    var isMotion = false
}

/// Follows what moves. What trembles in its place, comes for a moment or has no size is no motion.
struct MotionTracks {
    /// What counts as motion.
    struct Bounds: Sendable {
        /// Cells that must move.
        var cells: Float
        /// Seconds for which they must.
        var seconds: Float
    }

    private(set) var tracks: [MotionTrack] = []
    private var nextID: UInt32 = 1
    private var claimed: [Bool] = []
    private static let most = 32
    /// Seconds after which something that is not seen is forgotten.
    private static let patience: Float = 0.6
    /// Cells that something must go to be motion; larger things further, by a share of their size.
    private static let leastWay: Float = 4
    private static let wayOfSize: Float = 0.3
    /// The way there is at least such a share of the path: what trembles goes back and forth.
    private static let straightness: Float = 0.5
    /// The share of its box that moves: drops and leaves are scattered.
    private static let leastFill: Float = 0.25
    /// Something that does not go that far is motion if it goes on for so long.
    private static let longSeconds: Float = 2
    private static let longCells: Float = 3
    private static let longFill: Float = 0.12
    /// Something that goes so many times as far as it must, and straight on, may be smaller and more scattered: rain and
    /// noise hide a part of it, and something fast lies in pieces. Drops and leaves go nowhere for so long.
    private static let crossingWays: Float = 5
    private static let crossingStraightness: Float = 0.75
    private static let crossingCells: Float = 0.5

    init() {
        tracks.reserveCapacity(Self.most)
        claimed.reserveCapacity(PartFinder.most)
    }

    /// How near the best of them is to motion: 1 or more is motion.
    func level(_ bounds: Bounds) -> Float {
        var best: Float = 0
        for track in tracks {
            let near = min(
                track.cells / bounds.cells, bounds.seconds > 0 ? track.seenSeconds / bounds.seconds : 1,
                track.way / Self.wayNeeded(track.box))
            best = max(best, track.isMotion ? max(track.cells / bounds.cells, 1) : min(near, 0.99))
        }
        return best
    }

    private static func wayNeeded(_ box: CellBox) -> Float { leastWay + wayOfSize * min(box.width, box.height) }

    mutating func forgetAll() { tracks.removeAll(keepingCapacity: true) }

    /// Takes the parts of a picture.
    mutating func take(_ parts: [MovingPart], time: Int64, seconds: Float, bounds: Bounds) {
        claimed.removeAll(keepingCapacity: true)
        for _ in parts { claimed.append(false) }
        // Those that are motion choose first, then those seen for longest.
        tracks.sort { ($0.isMotion ? 1 : 0, $0.seenSeconds) > ($1.isMotion ? 1 : 0, $1.seenSeconds) }
        for index in tracks.indices { follow(index, parts, time, seconds, bounds) }
        tracks.removeAll { Float(time - $0.seen) / 1e9 > Self.patience }
        for (index, part) in parts.enumerated() where !claimed[index] && tracks.count < Self.most {
            tracks.append(
                MotionTrack(
                    id: nextID, box: part.box, since: time, seen: time, cells: Float(part.cells),
                    origin: part.box.middle))
            nextID &+= 1
        }
    }

    private mutating func follow(
        _ index: Int, _ parts: [MovingPart], _ time: Int64, _ seconds: Float, _ bounds: Bounds
    ) {
        var track = tracks[index]
        var found: CellBox?
        var cells = 0
        // Between two pictures it goes at most so far; what falls into pieces stays one.
        let reach = 2 + seconds * 20
        for (number, part) in parts.enumerated() where !claimed[number] && track.box.touches(part.box, reach: reach) {
            claimed[number] = true
            cells += part.cells
            if found == nil { found = part.box } else { found?.include(part.box) }
        }
        guard let found else { return }
        let share = min(seconds / 0.15, 1)
        let before = track.box.middle
        track.box = track.box.moved(to: found, by: share)
        let step = track.box.middle - before
        track.path += (step * step).sum().squareRoot()
        track.cells += (Float(cells) - track.cells) * share
        track.seen = time
        track.seenSeconds += seconds
        let way = track.box.middle - track.origin
        track.way = (way * way).sum().squareRoot()
        if track.seenSeconds >= bounds.seconds, Self.counts(track, bounds) { track.isMotion = true }
        tracks[index] = track
    }
    /// Whether something that was seen long enough is motion, by its size and by where it went.
    private static func counts(_ track: MotionTrack, _ bounds: Bounds) -> Bool {
        let fill = track.cells / max(track.box.width * track.box.height, 1)
        let far = track.way / wayNeeded(track.box)
        let straight = track.path > 0 ? track.way / track.path : 0
        let goes = far >= 1 && straight >= straightness && fill >= leastFill && track.cells >= bounds.cells
        let crosses =
            far >= crossingWays && straight >= crossingStraightness && fill >= longFill
            && track.cells >= crossingCells * bounds.cells
        let stays =
            track.seenSeconds >= longSeconds && fill >= longFill && track.cells >= longCells * bounds.cells
        return goes || crosses || stays
    }
}
