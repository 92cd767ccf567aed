// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Recordings
import Reports

/// The files of earlier recordings: the oldest are removed where 'keepSeconds' or 'keepMegabytes' says so.
final class OldRecordings {
    private let context: StageContext
    private let folder: String
    private let own: OwnRecordings
    private let retention: RetentionPolicy
    private var last: Int64
    private var reported = Reported()

    /// - Parameter owner: The name that the recorder marks its files with.
    init(_ files: RecordingFiles, _ options: RecorderOptions, _ owner: String, _ context: StageContext) {
        self.context = context
        folder = files.pattern.folder
        own = OwnRecordings(
            files.pattern, holder: OutputFile.holder, companions: Sidecar.allCases, recorder: owner,
            run: context.files.id)
        retention = RetentionPolicy(seconds: options.keepSeconds, megabytes: options.keepMegabytes)
        last = context.clock.now()
        guard retention.isOn else { return }
        files.completed = { [own, clock = context.clock] in own.complete($0, at: clock.moment) }
    }

    var isOn: Bool { retention.isOn }

    /// Whether files may have become too old since the last removal.
    var isDue: Bool { isOn && context.clock.now() - last >= 10_000_000_000 }

    /// Looks at what is there.
    ///
    /// - Returns: The highest number in a name.
    func look() -> Int64 {
        guard isOn else { return own.highestNumberOfNewest() }
        _ = own.look(now: context.clock.moment)
        return own.highestNumber
    }

    /// Removes what is too much, if anything is to be removed at all.
    ///
    /// - Parameters:
    ///   - bytes: What the recording has written so far.
    ///   - file: The file that is being written.
    func remove(writing bytes: Int64, except file: FileIdentity?) {
        guard isOn else { return }
        last = context.clock.now()
        let removal = own.removeExcess(
            retention, writing: bytes, except: file, now: context.clock.moment, context.files)
        if let strangers = removal.strangers { report(strangers) }
        for file in removal.removed {
            context.post(
                "recording-removed",
                text:
                    "'\(file.path)' was removed: it was the oldest file when 'keepSeconds' or 'keepMegabytes' was reached.",
                details: ["path": .string(file.path), "bytes": .number(file.bytes)])
        }
        report(removal.kept)
    }

    /// Reports files that look like older recordings and are not known to be any.
    private func report(_ strangers: OwnRecordings.Strangers) {
        context.post(
            "recording-not-removed", once: &reported, as: "strangers", level: .warning,
            text:
                "\(strangers.count == 1 ? "1 file has a name" : "\(strangers.count) files have names") of this recorder's pattern, but no mark that this recorder made \(strangers.count == 1 ? "it" : "them") there on this machine, such as '\(strangers.example)'. 'keepSeconds' and 'keepMegabytes' neither count nor remove such files (\(strangers.bytes) bytes). If an earlier version of framehost recorded them, or if they were moved or copied there, run `framehost recordings adopt \(folder)`.",
            details: [
                "path": .string(strangers.example), "files": .number(strangers.count),
                "bytes": .number(strangers.bytes),
            ])
    }

    private func report(_ kept: KeptRecordings) {
        guard let text = kept.text, let first = kept.first else { return }
        context.post(
            "recording-not-removed", once: &reported, level: .warning, text: text,
            details: ["path": .string(first.path), "files": .number(kept.count), "bytes": .number(kept.bytes)])
    }
}
