// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A stretch of a recording and what can be read of it.
struct Caption: Equatable {
    var begin: MediaTime
    var end: MediaTime
    var text: String
    /// How many lost events it stands for.
    var lost = 0
}

/// The text of a WebVTT file (W3C, WebVTT: The Web Video Text Tracks Format). Pure.
enum CaptionText {
    /// The first line of our files, which tells them from those of other programs.
    static let mark = "WEBVTT framehost\n"

    /// Appends a cue with an empty line before it.
    ///
    /// - Parameter origin: The time that is 0 in the file.
    static func add(_ caption: Caption, origin: MediaTime, to bytes: inout [UInt8]) {
        let begin = max(caption.begin - origin, .zero)
        let end = max(caption.end - origin, begin + MediaTime(nanoseconds: 1_000_000))
        bytes += "\n\(time(begin)) --> \(time(end))\n\(escaped(caption.text))\n".utf8
    }

    /// `00:00:01.250`, rounded down.
    static func time(_ time: MediaTime) -> String {
        let milliseconds = time.nanoseconds / 1_000_000
        func padded(_ value: Int64, _ width: Int) -> String {
            let digits = String(value)
            return String(repeating: "0", count: max(width - digits.utf8.count, 0)) + digits
        }
        return
            "\(padded(milliseconds / 3_600_000, 2)):\(padded(milliseconds / 60_000 % 60, 2)):\(padded(milliseconds / 1000 % 60, 2)).\(padded(milliseconds % 1000, 3))"
    }

    /// Text for a cue: on one line, with entities in place of characters that would be markup.
    private static func escaped(_ text: String) -> String {
        var result = ""
        // Scalars, not characters: a combining mark would make another character of the one before it.
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\n", "\r", "\u{0b}", "\u{0c}", "\u{85}", "\u{2028}", "\u{2029}": result += " "
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}

/// A WebVTT file beside a recording.
final class CaptionLog: SidecarLog {
    private let origin: MediaTime

    /// - Parameters:
    ///   - file: An empty file.
    ///   - origin: The time that is 0 in the recording.
    init(_ file: HeldFile, origin: MediaTime) {
        self.origin = origin
        super.init(.captions, file, head: CaptionText.mark)
    }

    /// Adds a cue, which must not begin before the previous one; ``flush()`` writes it.
    func add(_ caption: Caption) { CaptionText.add(caption, origin: origin, to: &lines) }
}

/// The ids of the faces of a picture: the first eight, and how many there are.
struct FaceIDs: Equatable {
    static let most = 8
    private(set) var count = 0
    private var ids = InlineArray<8, UInt32>(repeating: 0)

    init() {}

    init(_ faces: Faces) {
        count = faces.count
        for (index, face) in faces.prefix(Self.most).enumerated() { ids[index] = face.id }
    }

    static func == (a: FaceIDs, b: FaceIDs) -> Bool {
        a.count == b.count && (0..<min(a.count, most)).allSatisfy { a.ids[$0] == b.ids[$0] }
    }

    /// `2 faces: 4, 7`.
    var text: String {
        let shown = (0..<min(count, Self.most)).map { String(ids[$0]) } + (count > Self.most ? ["…"] : [])
        return "\(count) \(count == 1 ? "face" : "faces"): \(shown.joined(separator: ", "))"
    }
}

/// What happens in a recording: faces in sight and the chain's events, in the order of their times.
///
/// Used on the stage thread. Pictures come in decoding order, so what happened before a time is known once a
/// picture's DTS has reached that time.
final class CaptionFeed {
    /// For how long an event is shown.
    static let shown = MediaTime(nanoseconds: 2_000_000_000)
    /// A sight of the same faces is cut after this time, since what comes later in the file waits for it.
    static let longestSight = MediaTime(nanoseconds: 10_000_000_000)
    /// The longest gap within a sight, from the end of a picture to the next one: a camera in the dark gives fewer
    /// pictures than it says.
    static let longestHole = MediaTime(nanoseconds: 500_000_000)
    /// The most events that wait; beyond this, the oldest are left out.
    static let mostWaiting = 1024

    private struct Sight {
        var begin: MediaTime
        var end: MediaTime
        var faces: FaceIDs
    }

    private let events: EventSubscription
    private let stageID: String
    private let isLive: Bool
    /// How far back a recording can begin.
    private let past: MediaTime
    /// Events in the order of their times.
    private var waiting: [Caption] = []
    /// Pictures that are not shown yet, in the order of their times; while faces are in sight, also those without
    /// faces.
    private var sights: [Sight] = []
    /// The faces that are in sight at the last time that was taken.
    private var open: Sight?
    private var isRecording = false
    /// When the last cue that was given begins.
    private var latest = MediaTime.zero

    /// - Parameters:
    ///   - stageID: The recorder's own id, whose events are left out.
    ///   - isLive: Whether the source is live: then the chain clock says where an event belongs.
    ///   - preEventSeconds: How far back a recording can begin.
    init(_ events: EventSubscription, stageID: String, isLive: Bool, preEventSeconds: Double) {
        self.events = events
        self.stageID = stageID
        self.isLive = isLive
        past = MediaTime(seconds: preEventSeconds + 1)
    }

    /// [per picture, whether it is recorded or not] Takes the events that came since the last picture.
    func hear(with unit: RecordedUnit) {
        let new = events.take()
        for event in new.events where event.level >= .info {
            guard let stage = event.stage, stage != stageID else { continue }
            let time = time(of: event, with: unit)
            let caption = Caption(
                begin: time, end: time + Self.shown, text: "\(stage) (\(event.name)): \(event.text)")
            wait(caption)
        }
        if new.lost > 0 { waitForLost(new.lost, at: unit.pts) }
        if !isRecording { waiting.removeAll { $0.begin < unit.pts - past } }
        let excess = waiting.count - Self.mostWaiting
        guard excess > 0 else { return }
        let lost = waiting[...excess].reduce(0) { $0 + max($1.lost, 1) }
        waiting.removeFirst(excess + 1)
        waitForLost(lost, at: waiting[0].begin)
    }

    private func wait(_ caption: Caption) {
        waiting.insert(caption, at: waiting.lastIndex { $0.begin <= caption.begin }.map { $0 + 1 } ?? 0)
    }

    /// Events were lost: the file must not look as if nothing had happened.
    private func waitForLost(_ count: Int, at time: MediaTime) {
        wait(
            Caption(begin: time, end: time + Self.shown, text: "\(count) events are missing here", lost: count))
    }

    /// The PTS of a picture that was captured at the event's time.
    private func time(of event: Event, with unit: RecordedUnit) -> MediaTime {
        if let pts = event.pts { return pts }
        guard isLive, unit.capturedAt != 0 else { return unit.pts }
        return unit.pts + (MediaTime(nanoseconds: event.time) - MediaTime(nanoseconds: unit.capturedAt))
    }

    // MARK: A file

    /// Begins a file. What happened before it is left out.
    func begin(at time: MediaTime) {
        isRecording = true
        latest = time
        waiting.removeAll { $0.begin < time }
    }

    /// Takes note of a picture that is in the file.
    func see(_ unit: RecordedUnit) {
        guard unit.faces.count > 0 || open != nil || !sights.isEmpty else { return }
        let sight = Sight(begin: unit.pts, end: unit.pts + unit.duration, faces: unit.faces)
        sights.insert(sight, at: sights.lastIndex { $0.begin <= unit.pts }.map { $0 + 1 } ?? 0)
    }

    /// Gives what began before a time and has ended, in order.
    func take(before time: MediaTime, _ body: (Caption) -> Void) {
        while let next = sights.first, next.begin < time {
            sights.removeFirst()
            if let sight = open {
                let follows = next.begin <= sight.end + Self.longestHole
                if follows, next.faces == sight.faces, next.end - sight.begin <= Self.longestSight {
                    open?.end = next.end
                    continue
                }
                close(at: follows ? next.begin : sight.end, body)
            }
            giveEvents(before: next.begin, body)
            open = next.faces.count > 0 ? next : nil
        }
        if let sight = open, sight.end + Self.longestHole < time { close(at: sight.end, body) }
        if open == nil { giveEvents(before: time, body) }
    }

    /// Ends the file at the end of its last picture. Faces that stay in sight begin anew in the next file.
    func finish(at time: MediaTime, _ body: (Caption) -> Void) {
        take(before: time, body)
        if let sight = open { close(at: min(sight.end, time), body) }
        giveEvents(before: time, body)
        sights = []
        isRecording = false
    }

    private func close(at end: MediaTime, _ body: (Caption) -> Void) {
        guard let sight = open else { return }
        open = nil
        give(Caption(begin: sight.begin, end: end, text: sight.faces.text), body)
        giveEvents(before: end, body)
    }

    private func giveEvents(before time: MediaTime, _ body: (Caption) -> Void) {
        while let first = waiting.first, first.begin < time { give(waiting.removeFirst(), body) }
    }

    /// Cues must be in the order in which they begin: what is known too late begins with the cue before it.
    private func give(_ caption: Caption, _ body: (Caption) -> Void) {
        latest = max(latest, caption.begin)
        body(Caption(begin: latest, end: max(caption.end, latest), text: caption.text))
    }
}
