// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The frames that are kept back: each waits until those after it have been searched. All memory is taken at the
/// start.
final class LookAhead {
    /// What a frame's line says, kept until the frame goes out.
    struct Told {
        var isSearched = false
        /// Whether its search was late.
        var isLate = false
        var faces: [FaceLine] = []
    }

    /// The most frames that any `lookAheadSeconds` may ask for.
    static let mostFrames = 600
    /// How far it looks ahead without the option, seconds, and the most that its frames may then take.
    private static let usualSeconds = 1.0
    private static let mostUsualBytes = 256 << 20

    private var frames: FrameRing
    private(set) var covers: TwoWayGuard
    /// What the optical flow works on, at the frame's number modulo the count; `told` likewise.
    private let grays: [GrayPyramid]
    private var told: [Told]
    private let flow = MedianFlow()
    private let scale: (x: Double, y: Double)

    /// - Parameters:
    ///   - count: Frames that are looked ahead.
    ///   - finder: The finder whose small pictures are kept.
    init(count: Int, _ options: FaceEffectOptions, _ format: VideoFormat, _ finder: FaceFinder) {
        frames = FrameRing(capacity: count + 1)
        covers = TwoWayGuard(
            capacity: count, holdTime: Int64(options.holdSeconds * 1e9), sure: options.keepThreshold + 0.1,
            width: format.width, height: format.height)
        let small = finder.gray.full
        grays = (0...count).map { _ in GrayPyramid(width: small.width, height: small.height) }
        told = [Told](repeating: Told(), count: count + 1)
        for index in told.indices { told[index].faces.reserveCapacity(FaceTracks.mostTracks) }
        scale = finder.scale
    }

    /// Frames that are looked ahead at this rate; at most ``mostFrames``.
    ///
    /// - Throws: ``FrameHostError`` where `seconds` asks for more.
    static func frames(_ seconds: Double?, _ format: VideoFormat) throws -> Int {
        let rate = format.frameRate.isZero ? 30 : format.frameRate.value
        if let seconds {
            let wanted = min(seconds * rate, 1e6).rounded(.up)
            guard wanted <= Double(mostFrames) else {
                throw FrameHostError(
                    .invalidConfiguration, place: "lookAheadSeconds",
                    what:
                        "'lookAheadSeconds' must be at most \(mostFrames) frames long, but \(seconds.optionJSON.text()) s are \(Int(wanted)) frames",
                    remedy: "Choose at most \(Double(Int(Double(mostFrames) / rate * 10)) / 10) s.")
            }
            return Int(wanted)
        }
        let fitting = mostUsualBytes / max(format.width * format.height * 3 / 2, 1)
        return min(max(min(Int((usualSeconds * min(rate, 1000)).rounded(.up)), fitting), 4), mostFrames)
    }

    /// Bytes in addition to the frames, for the plan.
    static func bytes(frames: Int, _ format: VideoFormat, _ sizes: SearchSizes) -> Int {
        let small = SmallPicture.squareSize(format, longSide: sizes.trackingSide)
        let each =
            small.width * small.height * 21 / 16 + FaceTracks.mostTracks * MemoryLayout<FaceLine>.stride
            + TwoWayGuard.mostCovers * MemoryLayout<TwoWayGuard.Cover>.stride
            + OpenCV.mostFindings * MemoryLayout<FaceRect>.stride
        return (frames + 1) * each
    }

    /// Frames that wait.
    var count: Int { frames.count }
    /// Whether the oldest is due.
    var isFull: Bool { frames.count > covers.capacity }

    /// [stage thread] Adds the next frame.
    func add(
        _ frame: consuming Frame, _ state: TwoWayGuard.Frame, _ known: [TwoWayGuard.Face], _ privacy: PrivacyGuard,
        _ finder: FaceFinder, _ map: UprightMap, _ look: FaceFinder.Look
    ) {
        let place = (covers.oldestNumber + covers.count) % grays.count
        grays[place].copy(from: finder.gray)
        (told[place].isSearched, told[place].isLate) = (look == .answered, look == .late)
        told[place].faces.removeAll(keepingCapacity: true)
        for track in finder.tracks.tracks where track.isConfirmed {
            told[place].faces.append(FaceLine(track, map, now: finder.frame))
        }
        let (grays, flow, scale) = (grays, flow, scale)
        covers.add(state, known, regions: zip(privacy.regions, privacy.serials), weak: finder.weak) { box, from, to in
            let there = box.scaled(1 / scale.x, 1 / scale.y)
            guard let motion = flow.follow(there, from: grays[from % grays.count], to: grays[to % grays.count], side: 5)
            else { return nil }
            return FaceRect(
                centerX: box.centerX + motion.dx * scale.x, centerY: box.centerY + motion.dy * scale.y,
                width: box.width * motion.growth, height: box.height * motion.growth)
        }
        frames.append(frame)
    }

    /// [stage thread] Hands the oldest frame to `body`; false when none waits.
    @discardableResult
    func withOldest(_ body: (consuming Frame, TwoWayGuard.Plan, Told) throws -> Void) rethrows -> Bool {
        let place = covers.oldestNumber % told.count
        guard let frame = frames.takeOldest(), let plan = covers.takeOldest() else { return false }
        try body(frame, plan, told[place])
        covers.count(plan)
        return true
    }

    /// [stage thread] Lets go of all frames.
    func stop() { frames.removeAll() }
}
