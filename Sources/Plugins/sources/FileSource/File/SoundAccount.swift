// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Compares the sound that a chain gets of a file with what the file promises, as ``FileSource`` does for pictures.
///
/// Used by the stage's thread.
struct SoundAccount {
    private let context: StageContext
    private let file: MediaFile
    private let track: Int
    private let range: FileTimeRange
    private let promise: FilePromise
    private var walk: (any ContainerWalk)?
    private var packets = 0
    private var damaged = 0
    private var hasSamples = false
    /// Where the packets that were read end, in the file's own time.
    private var reached = MediaTime.zero
    /// What the files before it lack.
    private let lackBefore: String?

    /// [setup thread, stage thread]
    ///
    /// - Parameters:
    ///   - track: The index among all tracks.
    ///   - range: What of the file is played.
    init(_ context: StageContext, _ file: MediaFile, track: Int, range: FileTimeRange) {
        (self.context, self.file, self.track, self.range) = (context, file, track, range)
        promise = FilePromise(file, track: track)
        walk = file.containerWalk(track)
        lackBefore = context.inputAccount?.shortfall
    }

    /// [setup thread] Says how many packets are promised by files whose index has them all.
    static func open(_ context: StageContext, _ file: MediaFile, track: Int, isWhole: Bool) {
        context.inputAccount = InputAccount(promised: isWhole ? file.indexed(track, after: -1)?.packets : nil)
        context.showFigures { [context] in context.inputAccount?.json ?? .object([]) }
    }

    private func change(_ change: (inout InputAccount) -> Void) {
        guard var account = context.inputAccount else { return }
        change(&account)
        context.inputAccount = account
    }

    /// - Parameter end: Where the packet ends on the timeline of the range.
    mutating func read(upTo end: MediaTime) {
        packets += 1
        reached = max(reached, end + range.shift)
    }

    /// Says that something came out of the decoder.
    mutating func decode() { hasSamples = true }

    /// Counts a packet that cannot be decoded, and reports the first.
    mutating func damage() {
        // Whoever cuts a stream does not cut it between packets.
        if file.isStream, !hasSamples { return }
        damaged += 1
        change { $0.damaged += 1 }
        if damaged == 1 { post("A packet of the sound of '\(file.path)' could not be decoded; it is left out.") }
    }

    private func post(_ text: String) {
        context.post("sound-damaged", level: .warning, text: text, details: ["damaged": .number(damaged)])
    }

    /// Once all was read: goes on looking through the container, which long files take some calls for; true at the end.
    mutating func looksThroughContainer() -> Bool { walk?.step() != true }

    /// Reports what is wrong with the file.
    ///
    /// - Parameter isDecoded: Whether its packets were decoded.
    func close(isDecoded: Bool) {
        if damaged > 1 {
            post("\(damaged) packets of the sound of '\(file.path)' could not be decoded; they are left out.")
        }
        // What the reader has found: packets of the index, or why it could not go on.
        if context.inputAccount?.shortfall == lackBefore, let found = shortfall(isDecoded: isDecoded) {
            context.post(
                "file-incomplete", level: .warning, text: "\(found.text(file.path, isSound: true)).",
                details: found.details)
            change { $0.shortfall = $0.shortfall ?? found.text(file.path, isSound: true) }
        }
        change { $0.given += packets }
    }

    private func shortfall(isDecoded: Bool) -> FileShortfall? {
        let isWhole = range.begin == nil && range.end == nil
        if isDecoded, !hasSamples, packets > 0 || (isWhole && !file.hasPictures) { return .silent }
        let isRangeDone = range.end.map { reached >= $0 } ?? false
        if !isRangeDone {
            // A reader with an end does not count what its index has.
            let length = promise.length ?? (file.indexedPictures(track) == nil ? nil : end)
            if file.timeline.outliers == 0, packets > 0, let length {
                let wanted = range.end.map { min($0, length) } ?? length
                let tolerance = MediaTime(seconds: max(0.25, 3 * reached.seconds / Double(packets)))
                if reached + tolerance < wanted { return .endsAt(reached, of: length) }
            }
            if promise.missingBytes > 0 { return .bytes(promise.missingBytes) }
        }
        return walk?.gaps.first { gap in
            if let begin = range.begin, let end = gap.end, end <= begin { return false }
            return !isRangeDone || (gap.begin.map { $0 < reached } ?? true)
        }.map { .gap($0) }
    }

    /// Where its index ends.
    private var end: MediaTime? {
        file.duration(track).map { file.timeBase(track).time(ofTicks: file.origin(track)) + $0 }
    }
}
