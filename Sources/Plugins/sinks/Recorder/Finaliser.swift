// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore
import Glibc
import Recordings

/// Rewrites a complete fragmented file with its index in front, as a job in the background.
///
/// The copy is made beside the original, compared with it packet by packet, synced to the disk and renamed over it. So
/// there is a complete file under the name at every moment. The next recorder of the pattern removes a copy that was
/// left unfinished.
struct Finaliser: Sendable {
    /// With `auto`, a file of this size or larger stays as it is.
    static let autoLimit: Int64 = 2_000_000_000
    /// Free space that the copy leaves on the disk for the recording that goes on.
    static let reserve: Int64 = 256_000_000

    let path: String
    let container: Container
    let when: FinalizeWhen
    /// Bytes that the index will need.
    let indexBytes: Int
    let ends: [TrackEnd]
    /// The identity of the recorded file; nil for any file that has the name.
    let identity: FileIdentity?
    /// Knows whether a lack of room was reported already.
    let room: RoomReport
    /// The chapters of the file, and how it keeps its tags.
    let tags: RecordedTags
    /// The time on the chain's timeline that is 0 in the file.
    let origin: MediaTime

    init(
        path: String, container: Container, when: FinalizeWhen, indexBytes: Int, ends: [TrackEnd],
        identity: FileIdentity? = nil,
        room: RoomReport = RoomReport(), tags: RecordedTags = RecordedTags(),
        origin: MediaTime = .zero
    ) {
        (self.tags, self.origin) = (tags, origin)
        self.identity = identity
        self.room = room
        self.path = path
        self.container = container
        self.when = when
        self.indexBytes = indexBytes
        self.ends = ends
    }

    /// For a file that was just finished; nil where there is nothing to do.
    init?(path: String, container: Container, when: FinalizeWhen, like muxer: MuxerHandle, room: RoomReport) {
        guard container != .mkv, when != .never else { return nil }
        self.init(
            path: path, container: container, when: when, indexBytes: muxer.index.reserved, ends: muxer.ends,
            identity: muxer.file.held.identity, room: room, tags: muxer.tags,
            origin: muxer.origin)
    }

    /// `.out.mp4.finalising`, in the same folder.
    static func temporary(for path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return ".\(path)\(suffix)" }
        return "\(path[...slash]).\(path[path.index(after: slash)...])\(suffix)"
    }

    /// The name of the file that a temporary one was to replace; nil when `name` is not such a temporary name.
    static func original(ofTemporary name: String) -> String? {
        guard name.hasPrefix("."), name.hasSuffix(suffix), name.count > suffix.count + 1 else { return nil }
        return String(name.dropFirst().dropLast(suffix.count))
    }

    private static let suffix = ".finalising"

    // MARK: The job

    /// [stage thread]
    func addJob(_ context: StageContext) {
        let title = "finalising \(path.split(separator: "/").last ?? "")"
        context.addJob(title) { progress in
            try run(context, Watch(isCancelled: { progress.isCancelled }, report: progress.report))
        }
    }

    /// Lets the job's owner cancel the work, and follow its progress.
    struct Watch {
        var isCancelled: () -> Bool
        var report: (Double) -> Void

        func goOn() throws {
            guard isCancelled() else { return }
            throw FrameHostError(
                .stopped, what: "not finished, because the run was stopped",
                remedy: "The file stays in fragments and can be played."
            )
        }
    }

    /// [job thread]
    func run(_ context: StageContext, _ watch: Watch) throws {
        // Retention may have removed the file meanwhile, or another file may have its name.
        guard let original = try hold(context.files, watch) else { return }
        if when == .auto, original.size >= Self.autoLimit {
            return context.post(
                "recording-not-finalised",
                text:
                    "'\(path)' stays in fragments because it is larger than 2 GB. \"finalize\": \"always\" rewrites such files too.",
                details: ["path": .string(path), "bytes": .number(original.size)])
        }
        let lack = faultOfRoom(original.size)
        let isFirst = room.isFirst(lacks: lack != nil)
        if let lack {
            if isFirst { throw lack }
            return context.post(
                "recording-not-finalised", level: .debug, text: "'\(path)' stays in fragments: \(lack.what).",
                details: ["path": .string(path), "bytes": .number(original.size)])
        }
        let bytes = try replace(original, context.files, watch)
        context.post(
            "recording-finalised", text: "'\(path)' now has its index in front (\(bytes) bytes).",
            details: ["path": .string(path), "bytes": .number(bytes)])
    }

    private func hold(_ files: RunFiles, _ watch: Watch) throws -> OutputFile? {
        do { return try OutputFile.hold(path, meant: identity, files, watch.goOn) } catch let refusal as FileRefusal {
            throw Self.fault(refusal.fault(path).what)
        }
    }

    private func faultOfRoom(_ size: Int64) -> FrameHostError? {
        var room = statvfs()
        guard when == .auto, statvfs(path, &room) == 0 else { return nil }
        let free = Int64(room.f_bavail) * Int64(room.f_frsize)
        guard free < size + Self.reserve else { return nil }
        return FrameHostError(
            .unavailable,
            what:
                "there is no space for a copy of \(size) bytes (\(free) bytes are free, but \(Self.reserve) are kept in reserve)",
            remedy:
                "Free some space, or set \"finalize\": \"never\". This file stays in fragments, as do later ones until there is space; all can be played."
        )
    }

    /// Makes the copy and puts it in the original's place; returns its size.
    private func replace(_ original: OutputFile, _ files: RunFiles, _ watch: Watch) throws -> Int64 {
        let mark = MarkedFile.marks(of: path, meant: original.held.identity).first
        var file = try makeCopy(files, mark)
        var isReplaced = false
        defer { if !isReplaced { files.discard(file.held) } }
        var summary = try copy(to: file, indexBytes: indexBytes, watch)
        if summary == nil {
            files.discard(file.held)
            file = try makeCopy(files, mark)
            summary = try copy(to: file, indexBytes: nil, watch)
        }
        guard let summary else { throw Self.fault("the index could not be written") }
        let copied = try RecordingReader.summary(of: file.path) { fraction in
            try watch.goOn()
            watch.report(0.6 + 0.4 * fraction)
        }
        guard copied == summary else {
            throw Self.fault("the copy differs from the recording (\(copied.difference(from: summary)))")
        }
        do {
            try file.takeOver(from: original)
            try file.sync()
        } catch { throw Self.fault("the copy cannot be completed: \(String(cString: strerror(abs(error.code))))") }
        if let refusal = files.exchange(file.held, over: path, meant: original.held.identity, own: original.held) {
            if access(path, F_OK) != 0, errno == ENOENT {
                throw FrameHostError(
                    .callFailed, what: "'\(path)' was removed before it was finalised",
                    remedy: "Record to a folder that no other program clears.")
            }
            throw Self.fault(refusal.fault(path).what)
        }
        isReplaced = true
        OutputFile.syncFolder(of: path)
        return file.size
    }

    /// Makes the copy beside the original, with the original's mark, and removes one that a killed run left.
    private func makeCopy(_ files: RunFiles, _ mark: RecordingMark?) throws -> OutputFile {
        let temporary = Self.temporary(for: path)
        let leftOver = PatternFolder.removeLeftOver(temporary, of: path, files)
        if leftOver == .exists {
            throw Self.fault("'\(temporary)' is in the way, and no mark in it says that a recorder made it: remove it")
        }
        do throws(FileRefusal) {
            if let leftOver, leftOver != .absent { throw leftOver }
            var file: OutputFile?
            // Marked before it has its name: an unmarked one would be nobody's.
            let held = try files.create(temporary, as: OutputFile.holder) { held in
                file = OutputFile(held, files)
                if let mark { file!.begin(with: mark, container.finalForm) }
            }
            return file ?? OutputFile(held, files)
        } catch {
            let isOther = [.exists, .writtenElsewhere, .writtenHere(OutputFile.holder)].contains(error)
            throw Self.fault(
                isOther ? "another recorder or program is finalising the same file" : error.fault(temporary).what)
        }
    }

    static func fault(_ reason: String) -> FrameHostError {
        FrameHostError(.callFailed, what: reason, remedy: "The file stays in fragments and can be played.")
    }

    /// The fault of a recording of which nobody knows whether it can be played.
    static func unreadable(_ reason: String) -> FrameHostError {
        FrameHostError(
            .callFailed, what: "the recording cannot be read back: \(reason)",
            remedy: "Check the file with 'ffprobe', and the disk that it is on.")
    }

    /// Writes the copy.
    ///
    /// - Parameter indexBytes: Room to leave in front; nil to write the index at the end, and then move everything
    ///   back to make room for it.
    /// - Returns: The original's contents; nil when the room was too small.
    private func copy(to file: OutputFile, indexBytes: Int?, _ watch: Watch) throws -> FileSummary? {
        let reader = try RecordingReader(path)
        let writer = try IndexedWriter(
            file: file, container: container, like: reader, ends: ends, indexBytes: indexBytes,
            tags: tags, origin: origin)
        let digests = PacketDigests(of: reader)
        while let packet = try reader.next() {
            try watch.goOn()
            watch.report(0.6 * reader.fraction)
            digests.add(packet)
            try writer.write(packet)
        }
        guard try writer.finish() else { return nil }
        return reader.summary(digests)
    }
}

/// Whether a lack of room was reported already, so that there is one warning, not one for each segment, until there is
/// room again.
final class RoomReport: Sendable {
    private let isLacking = Locked(false)

    /// [job thread] Whether this lack is the first since there was room.
    func isFirst(lacks: Bool) -> Bool {
        isLacking.withLock { before in
            defer { before = lacks }
            return lacks && !before
        }
    }
}
