// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Reports

/// The events of face-effect. They are rare: there is none for each frame.
struct FaceNotices {
    /// From one report of the privacy counts to the next, nanoseconds of the frames' time.
    private static let interval: Int64 = 10_000_000_000
    /// A detector that has been busy for this long is reported, once; nanoseconds.
    private static let stuckAfter: Int64 = 5_000_000_000

    /// Whether the detector has a model that `framehost models` knows; otherwise it has a cascade.
    var hasModel = true
    private var nextTelling: Int64?
    private var faceCount = 0
    private var failures = 0
    private var reported = Reported()
    private var late = LateWatch(frameRate: 30)
    private var hasBeenTooLate = false
    private var remedyOfLate = ""

    /// [setup thread] Notes what the notices depend on.
    ///
    /// - Parameters:
    ///   - frameRate: Frames a second.
    ///   - canAdapt: Whether the search becomes coarser by itself.
    mutating func begin(_ options: FaceEffectOptions, frameRate: Double, canAdapt: Bool) {
        late = LateWatch(frameRate: frameRate)
        let others = "Give it more processor time: a faster 'preset' of the encoder, smaller pictures or fewer a second"
        remedyOfLate =
            canAdapt
            ? "\(others), or a 'leastDetectionSize' below \(options.leastDetectionSize), which misses small faces."
            : options.detectionSize == nil
                ? "\(others)." : "Choose a smaller 'detectionSize', or leave it out. \(others)."
    }

    /// [stage thread] Counts a frame of a stage with privacy, and says when too many are late.
    mutating func note(isLate: Bool, time: Int64, to context: StageContext) {
        guard late.note(isLate: isLate, time: time) else { return }
        if late.isTooLate {
            hasBeenTooLate = true
            context.impairment =
                "covers \(Int(late.share * 100)) % of the pictures completely, because the search for faces is too slow"
            tellLate("In the last 10 s, \(Int(late.share * 100)) % of the pictures", to: context)
        } else {
            context.impairment = nil
            context.post("search-in-time", text: "Most searches for faces are in time again.")
        }
    }

    private func tellLate(_ what: String, to context: StageContext) {
        context.post(
            "search-late", level: .warning,
            text: "\(what) were covered completely, because the search for faces was too slow. \(remedyOfLate)",
            details: ["frames": .number(late.count), "late": .number(late.lateCount)])
    }

    /// [stage thread] Says how finely is searched from now on.
    func tell(_ sizes: SearchSizes, _ format: VideoFormat, to context: StageContext) {
        let (side, face) = (sizes.sides.last ?? 0, sizes.smallestYuNetFace(format))
        context.post(
            "search-size",
            text:
                "Searches on \(side) pixels from now on: finds 95 % of the faces that are \(face) pixels wide, and fewer of the smaller ones.",
            details: ["side": .number(side), "smallestFace": .number(face)])
    }

    /// [stage thread] Says that there are too many faces, at most every ten seconds.
    mutating func tellCrowd(time: Int64, to context: StageContext) {
        guard reported.isDue("crowd", now: time, every: Self.interval) else { return }
        context.post(
            "crowd", level: .warning,
            text:
                "There are more faces, or more places where faces were, than can be followed (\(FaceTracks.mostTracks)). Pictures are covered completely while that is so.",
            details: ["most": .number(FaceTracks.mostTracks)])
    }

    /// [stage thread] Posts what is due after a frame.
    ///
    /// - Parameter faceEvents: Whether the event `faces` is for people too.
    mutating func tell(
        _ finder: FaceFinder, _ privacy: PrivacyGuard?, faceEvents: Bool, time: Int64, to context: StageContext
    ) {
        if let fault = finder.takeFault() {
            failures += 1
            // The first failure is reported; the last event says how many there were.
            if failures == 1 {
                context.post(
                    "detector-failed", level: .warning,
                    text: "Face detection failed: \(fault.what). "
                        + (fault.cause.isEmpty ? "" : "\(fault.cause)\(fault.cause.hasSuffix(".") ? "" : ".") ")
                        + "Until it works again, "
                        + (privacy == nil
                            ? "no new face is found and known faces are lost." : "frames are covered completely.")
                        + (hasModel
                            ? " If this repeats, check the model with 'framehost models'"
                            : " If this repeats, replace the cascade's file, which may be damaged")
                        + (privacy == nil ? ", or choose another detector." : "."))
            }
        }
        if finder.busyFor > Self.stuckAfter {
            context.post(
                "detector-stuck", once: &reported, level: .warning,
                text: "The detector has not answered for \(Self.stuckAfter / 1_000_000_000) s. Until it does, "
                    + (privacy == nil ? "no new face is found" : "frames are covered completely")
                    + ". If this happens often, choose a smaller 'detectionSize'"
                    + (privacy == nil ? ", or another detector." : "."))
        }
        tellFaces(finder, level: faceEvents ? .info : .debug, to: context)
        guard let privacy else { return }
        if let next = nextTelling, time < next, next - time <= Self.interval { return }
        if nextTelling != nil { tellPrivacy(privacy, to: context) }
        nextTelling = time + Self.interval
    }

    /// [stage thread] Posts the events of the end.
    func finish(_ finder: FaceFinder, _ privacy: PrivacyGuard?, to context: StageContext) {
        context.post(
            "face-searches", level: .debug,
            text:
                "\(finder.searchCount) \(finder.searchCount == 1 ? "search" : "searches") for \(Self.frames(finder.frame + 1)), \(failures) failed.",
            details: [
                "searches": .number(finder.searchCount), "frames": .number(finder.frame + 1),
                "failed": .number(failures),
            ])
        if let privacy { tellPrivacy(privacy, to: context) }
        if hasBeenTooLate || isLateOften {
            tellLate("\(late.lateCount) of \(Self.frames(late.count))", to: context)
        }
    }

    /// Whether so many frames of the whole run were late.
    private var isLateOften: Bool {
        late.isEnough && Double(late.lateCount) > LateWatch.mostShare * Double(late.count)
    }

    /// [stage thread] Posts the event of the end of a stage that looked ahead.
    func finish(_ covers: TwoWayGuard, to context: StageContext) {
        func count(_ how: TwoWayGuard.How) -> Int { covers.coverCounts[how.rawValue] }
        context.post(
            "look-ahead",
            text:
                "Covered faces, counted in every frame: \(count(.found)) found by the frame's own search, \(count(.before)) before they were found, \(count(.bridged)) between two detections, \(count(.held)) after they were lost.",
            details: JSONNode(
                .object(
                    TwoWayGuard.How.allCases.map { JSONNode.Member(key: "\($0)", value: .number(count($0))) })))
    }

    /// The fault of a run whose detector failed or was too slow: nil unless at least half of the searches failed, more than
    /// half of the frames were late (of at least a second's), or the detector is stuck at the end.
    func fault(_ finder: FaceFinder, isPrivate: Bool) -> FrameHostError? {
        let consequence = isPrivate ? "frames were covered completely" : "faces were not found"
        if finder.busyFor > Self.stuckAfter {
            return FrameHostError(
                .callFailed,
                what: "the detector has not answered for \(finder.busyFor / 1_000_000_000) s: \(consequence)",
                remedy: "Choose a smaller 'detectionSize'\(isPrivate ? "." : ", or another detector.")")
        }
        if isPrivate, late.isEnough, late.lateCount > late.count / 2 {
            return FrameHostError(
                .exhausted,
                what:
                    "the search for faces was too slow: \(late.lateCount) of \(Self.frames(late.count)) were covered completely",
                remedy: remedyOfLate)
        }
        guard failures > 0, failures >= (finder.searchCount + 1) / 2 else { return nil }
        return FrameHostError(
            .callFailed, what: "the detector failed in \(failures) of \(finder.searchCount) searches: \(consequence)",
            remedy: (hasModel
                ? "Check the model with 'framehost models'. If it is damaged, remove its file, fetch it again and leave 'model' out."
                : "If the file of the cascade is damaged, replace it.")
                + (isPrivate ? "" : " Otherwise choose another detector.")
        )
    }

    /// `1 frame`, `2 frames`
    static func frames(_ count: Int) -> String { count == 1 ? "1 frame" : "\(count) frames" }

    private mutating func tellFaces(_ finder: FaceFinder, level: Event.Level, to context: StageContext) {
        let count = finder.tracks.tracks.count(where: \.isConfirmed)
        guard count != faceCount else { return }
        faceCount = count
        context.post(
            "faces", level: level, text: "\(count) \(count == 1 ? "face" : "faces").",
            details: ["count": .number(count)])
    }

    private func tellPrivacy(_ privacy: PrivacyGuard, to context: StageContext) {
        context.post("privacy", text: privacy.summary, details: privacy.figures)
    }
}

extension PrivacyGuard {
    /// What happened to the frames so far, for people. It says nothing about faces that the detector missed, since
    /// they are unknown.
    var summary: String {
        func count(_ mode: Mode) -> Int { counts[mode.rawValue] }
        let whole = Mode.allCases.filter(\.coversAll)
        return
            "\(FaceNotices.frames(counts.reduce(0, +))): \(count(.searched)) searched in time, \(count(.held)) more in which the search missed a known face that was covered anyway, \(whole.reduce(0) { $0 + count($1) }) covered completely (\(whole.map { "\($0.name) \(count($0))" }.joined(separator: ", "))); of the searched frames, \(uncoveredCount) went out unchanged because no face was found. How many faces no search saw is unknown."
    }

    /// The same, for programs.
    var figures: JSONNode {
        JSONNode(
            .object(
                Mode.allCases.map { JSONNode.Member(key: $0.name, value: .number(counts[$0.rawValue])) }
                    + [
                        JSONNode.Member(key: "uncovered", value: .number(uncoveredCount)),
                        JSONNode.Member(key: "missed", value: .string("unknown")),
                    ]))
    }
}
