import FrameCore

/// The events of face-effect: seldom, and none per frame.
struct FaceNotices {
    /// Nanoseconds of the frames' time between two tellings of the privacy counts.
    private static let interval: Int64 = 10_000_000_000
    /// A detector that has not come back for so long is told of, once.
    private static let stuckAfter: Int64 = 5_000_000_000

    private var nextTelling: Int64?
    private var faceCount = 0
    private var failures = 0
    private var hasToldStuck = false

    /// [stage thread] After each frame.
    mutating func tell(_ finder: FaceFinder, _ privacy: PrivacyGuard?, faceEvents: Bool, time: Int64, to context: StageContext) {
        if let fault = finder.takeFault() {
            failures += 1
            // The first says it; how many there were stands in the last event.
            if failures == 1 {
                context.post(
                    "detector-failed", level: .warning,
                    text: "\(context.stageID): the detector failed: \(fault.what). "
                        + (privacy == nil ? "Faces known so far run out." : "Frames are covered wholly.")
                        + (fault.cause.isEmpty ? "" : " \(fault.cause)"))
            }
        }
        if !hasToldStuck, finder.busyFor > Self.stuckAfter {
            hasToldStuck = true
            context.post(
                "detector-stuck", level: .warning,
                text: "\(context.stageID): the detector has not answered for \(Self.stuckAfter / 1_000_000_000) s. "
                    + (privacy == nil ? "Faces are no longer found." : "Frames are covered wholly until it does."))
        }
        if faceEvents { tellFaces(finder, to: context) }
        guard let privacy else { return }
        if let next = nextTelling, time < next, next - time <= Self.interval { return }
        if nextTelling != nil { tellPrivacy(privacy, to: context) }
        nextTelling = time + Self.interval
    }

    /// [stage thread] At the end.
    func finish(_ finder: FaceFinder, _ privacy: PrivacyGuard?, to context: StageContext) {
        context.post(
            "face-detections", level: .debug,
            text: "\(context.stageID): \(finder.detectionCount) detections for \(finder.frame + 1) frames, \(failures) failed.",
            details: [
                "detections": .number(finder.detectionCount), "frames": .number(finder.frame + 1), "failed": .number(failures),
            ])
        if let privacy { tellPrivacy(privacy, to: context) }
    }

    private mutating func tellFaces(_ finder: FaceFinder, to context: StageContext) {
        let count = finder.tracks.tracks.count(where: \.isConfirmed)
        guard count != faceCount else { return }
        faceCount = count
        context.post("faces", text: "\(context.stageID): \(count) \(count == 1 ? "face" : "faces").", details: ["count": .number(count)])
    }

    private func tellPrivacy(_ privacy: PrivacyGuard, to context: StageContext) {
        let counts = PrivacyGuard.Mode.allCases.map { ($0.name, privacy.counts[$0.rawValue]) }
        let whole = PrivacyGuard.Mode.allCases.filter(\.coversAll).reduce(0) { $0 + privacy.counts[$1.rawValue] }
        context.post(
            "privacy",
            text: "\(context.stageID): \(whole) of \(counts.reduce(0) { $0 + $1.1 }) frames covered wholly ("
                + counts.map { "\($0.0) \($0.1)" }.joined(separator: ", ") + ").",
            details: JSONNode(.object(counts.map { JSONNode.Member(key: $0.0, value: .number($0.1)) })))
    }
}
