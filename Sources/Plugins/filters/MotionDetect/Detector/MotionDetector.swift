// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Finds what moves in pictures of luma: pure, with the time of the pictures and no other.
///
/// Pictures that come faster than ``leastInterval`` are left out, so that the answer hardly depends on the frame rate.
final class MotionDetector {
    /// What a person chooses; may change between two pictures.
    struct Settings: Equatable, Sendable {
        /// 0...1: how little a thing must differ from what is behind it.
        var sensitivity: Float = 0.5
        /// The smallest thing that counts, as a share of the picture.
        var leastShare: Float = 0.002
        /// Seconds for which it must move.
        var leastSeconds: Float = 0.4
        /// Seconds at the start that only learn.
        var learnSeconds: Float = 2
    }

    let grid: CellGrid
    var settings: Settings
    private let model: MotionModel
    private var finder: PartFinder
    private var following = MotionTracks()
    /// Of the picture before, nil after a gap.
    private var last: Int64?
    /// Of the last picture that was looked at.
    private var looked: Int64 = 0
    /// Nothing is motion until then, nanoseconds.
    private var restUntil: Int64 = 0
    /// When little moved last.
    private var calmAt: Int64 = 0
    private var hasScene = false
    /// Nanoseconds between the last pictures, the latest first; 0 while there were none.
    private var intervals: (Int64, Int64) = (0, 0)

    /// Two pictures that are compared are at least so far apart, nanoseconds.
    static let leastInterval: Int64 = 60_000_000
    /// More time than this between two pictures is a gap, unless the two before were as far apart: then four times as
    /// much, up to a minute.
    private static let gap: Int64 = 2_000_000_000
    private static let usualIntervals: Int64 = 4
    private static let longestGap: Int64 = 60_000_000_000
    /// If so much of the picture moves at once, the scene is another: a light, a turned camera, a slate.
    private static let upheaval: Float = 0.35
    private static let upheavalTime: Int64 = 400_000_000
    private static let restAfterUpheaval: Int64 = 1_000_000_000

    init(_ grid: CellGrid, settings: Settings = Settings()) {
        self.grid = grid
        self.settings = settings
        model = MotionModel(grid)
        finder = PartFinder(grid)
    }

    /// What was seen last: with ``MotionTrack/isMotion``, what moves.
    var tracks: [MotionTrack] { following.tracks }
    /// When what moves was first seen, nanoseconds; nil if nothing is motion.
    var movesSince: Int64? {
        var first: Int64?
        for track in following.tracks where track.isMotion { first = min(first ?? track.since, track.since) }
        return first
    }
    /// The share of the picture that moves, whether it counts or not.
    var movingShare: Float { model.movingShare }
    /// Whether the pictures are still learned, so that nothing counts.
    func isLearning(at time: Int64) -> Bool { !hasScene || time < restUntil }
    /// How near the largest change is to motion: 1 or more is motion.
    var level: Float { following.level(bounds) }

    /// Leaves out the cells that are true.
    func ignore(_ cells: [Bool]) {
        for cell in 0..<grid.count { model.ignored[cell] = cells[cell] }
        model.ignoredChanged()
    }

    /// Whether a picture of this time is looked at: those that come too fast are not.
    func isDue(_ time: Int64) -> Bool {
        guard let last else { return true }
        return time - last >= Self.leastInterval || time < last
    }

    /// A picture is missing or another one is shown in its place: what comes after it is compared with itself.
    func pause() {
        last = nil
        following.forgetAll()
    }

    /// Looks at a picture.
    ///
    /// - Parameters:
    ///   - luma: The small picture of ``grid``, without padding.
    ///   - time: When it is shown, nanoseconds.
    func take(_ luma: UnsafePointer<UInt8>, time: Int64) {
        guard hasScene else {
            model.begin(luma)
            (hasScene, last, looked, calmAt) = (true, time, time, time)
            restUntil = time &+ Int64(settings.learnSeconds * 1e9)
            return
        }
        guard let before = last, follows(time, before) else {
            resume(luma, time)
            return
        }
        (last, looked) = (time, time)
        let seconds = Float(time - before) / 1e9
        let isResting = time < restUntil
        hold()
        model.take(luma, seconds: seconds, threshold: threshold, haste: isResting ? 4 : 1)
        // Another scene changes everywhere. What fills the part that is watched, or one that is not, is in the scene.
        let share = min(model.movingShare, model.changingShare)
        if share > Self.upheaval, time - calmAt <= Self.upheavalTime + (time - before) || isResting {
            model.begin(luma)
            following.forgetAll()
            restUntil = max(restUntil, time &+ Self.restAfterUpheaval)
            calmAt = time
            return
        }
        if share < Self.upheaval / 3 { calmAt = time }
        let bounds = bounds
        guard !isResting else { return following.forgetAll() }
        finder.find(model.moves, least: max(Int(bounds.cells / 4), 1))
        following.take(finder.parts, time: time, seconds: seconds, bounds: bounds)
    }

    /// Whether a picture belongs to the one before. Learns how far apart they usually are: one that comes late is a gap,
    /// three are the camera's way.
    private func follows(_ time: Int64, _ before: Int64) -> Bool {
        guard time > before else { return false }
        let usual = min(intervals.0, intervals.1, Self.longestGap)
        let longest = min(max(Self.gap, Self.usualIntervals * usual), Self.longestGap)
        intervals = (time - before, intervals.0)
        return time - before <= longest
    }

    /// Goes on after a gap, also where times begin anew: what was still to be learned is, and a second is for rest.
    private func resume(_ luma: UnsafePointer<UInt8>, _ time: Int64) {
        model.resume(luma)
        following.forgetAll()
        restUntil = time &+ max(restUntil &- looked, Self.restAfterUpheaval)
        (last, looked, calmAt) = (time, time, time)
    }

    private var bounds: MotionTracks.Bounds {
        MotionTracks.Bounds(
            cells: max(settings.leastShare * Float(grid.count), 1), seconds: settings.leastSeconds)
    }

    /// Levels of luma: 12 at sensitivity 0, 3 in the middle, 0.75 at 1.
    private var threshold: Float { 3 * exp2(2 - 4 * settings.sensitivity) }

    /// Where something moves, little is learned.
    private func hold() {
        model.isHeld.update(repeating: false, count: grid.count)
        for track in following.tracks where track.isMotion {
            let columns = max(Int(track.box.left), 0)..<max(min(Int(track.box.right.rounded(.up)), grid.columns), 0)
            let rows = max(Int(track.box.top), 0)..<max(min(Int(track.box.bottom.rounded(.up)), grid.rows), 0)
            for row in rows where columns.lowerBound < columns.upperBound {
                for column in columns { model.isHeld[row * grid.columns + column] = true }
            }
        }
    }
}
