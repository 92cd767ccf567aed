// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FrameCore
import Glibc

/// `framehost recordings adopt FOLDER`: recordings that retention does not know as framehost's own.
struct RecordingsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "recordings",
        abstract: "Takes over recordings that 'keepSeconds' and 'keepMegabytes' leave alone.",
        subcommands: [Adopt.self])

    struct Adopt: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "adopt",
            abstract: "Marks recordings of a folder as framehost's own, so that a recorder may remove them.",
            discussion: """
                A recorder removes only files that carry its mark, with the machine, the folder and the name that they have now: not those of earlier \
                versions of framehost, nor files that were renamed, copied or moved. This command lists such files of a folder and the folders in it. \
                With --yes it adds a mark at the end of each; nothing else in the file changes, and its times stay. Their ages are counted from their times of \
                modification, so check the ages that it lists. From then on the files count as recordings of any recorder whose 'path' makes their name there, and 'keepSeconds' and 'keepMegabytes' may \
                remove them. Files that are cut off, in use, write-protected or linked are left as they are. Exit status: 0 all files were \
                listed or marked, 1 some were not, 2 the command line is wrong.
                """)

        @Argument(help: "The folder.", completion: .directory)
        var folder: String

        @ArgumentParser.Option(
            help: ArgumentHelp(
                "Only files whose names fit this pattern of the shell. Repeatable.", valueName: "'cam-*.mp4'"))
        var only: [String] = []

        @ArgumentParser.Option(
            help: ArgumentHelp("Only for this recorder: its chain's name and its id.", valueName: "chain/stage"))
        var recorder: String?

        @Flag(help: "Mark the files. Without this flag they are only listed.")
        var yes = false

        func run() throws {
            let adoption: RecordingAdoption
            do {
                adoption = try RecordingAdoption(folder: folder, only: only)
            } catch {
                throw report(error)
            }
            let outcome = adoption.run(recorder: recorder ?? "", isMarking: yes) { Terminal.say($0.printable()) }
            Terminal.say(outcome.text(isMarking: yes, folder: folder).printable())
            if outcome.left > 0 { throw ExitCode(1) }
        }
    }
}

/// Finds the recordings of a folder without a mark that fits them, and marks them.
struct RecordingAdoption {
    /// A recording that could be adopted.
    struct File {
        var path: String
        var identity: FileIdentity
        var bytes: Int64
        /// Milliseconds since 1970.
        var time: Int64
    }

    struct Outcome: Equatable {
        var taken = 0
        var bytes: Int64 = 0
        var left = 0

        func text(isMarking: Bool, folder: String) -> String {
            guard taken + left > 0 else { return "There is no recording to adopt in '\(folder)'." }
            let files = taken == 1 ? "1 file" : "\(taken) files"
            let rest =
                left == 0 ? "" : " \(left) \(left == 1 ? "is" : "are") left as \(left == 1 ? "it is" : "they are")."
            guard isMarking else {
                return
                    "\(files) (\(Terminal.bytes(Int(bytes)))) would be adopted.\(rest) Nothing was changed. If framehost recorded them, add --yes."
            }
            return "\(files) (\(Terminal.bytes(Int(bytes)))) adopted.\(rest)"
        }
    }

    /// The most folders within each other.
    private static let mostDepth = 16
    /// The endings of a recorder's files.
    private static let endings = [".mp4", ".m4v", ".mov", ".mkv", ".m4a", ".mka"]

    private(set) var files: [File] = []

    /// - Throws: ``FrameHostError`` where the folder cannot be read.
    init(folder: String, only: [String] = []) throws {
        guard let stream = opendir(folder) else {
            let code = errno
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(folder),
                what: code == ENOENT
                    ? "there is no such folder" : "the folder cannot be read: \(String(cString: strerror(code)))",
                remedy: "Name a folder with recordings.")
        }
        closedir(stream)
        visit(folder, only, depth: 0)
        files.sort { ($0.time, $0.path) < ($1.time, $1.path) }
    }

    private mutating func visit(_ folder: String, _ only: [String], depth: Int) {
        guard depth < Self.mostDepth, let stream = opendir(folder) else { return }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            // Temporary and hidden files are no recordings.
            if !name.hasPrefix(".") { names.append(name) }
        }
        closedir(stream)
        let fingerprint = RecordingMark.fingerprint(ofFolder: folder)
        for name in names.sorted() {
            let path = "\(folder)/\(name)"
            var status = stat()
            guard lstat(path, &status) == 0 else { continue }
            if status.st_mode & S_IFMT == S_IFDIR {
                visit(path, only, depth: depth + 1)
                continue
            }
            let lower = name.lowercased()
            guard status.st_mode & S_IFMT == S_IFREG, Self.endings.contains(where: { lower.hasSuffix($0) }),
                only.isEmpty || only.contains(where: { fnmatch($0, name, 0) == 0 })
            else { continue }
            let identity = FileIdentity(status)
            let isKnown = MarkedFile.marks(of: path, meant: identity).contains { mark in
                mark.names(name, in: fingerprint, recorder: mark.recorder)
            }
            guard !isKnown else { continue }
            let seconds = min(max(Int64(status.st_mtim.tv_sec), 0), 8_000_000_000 - 1)
            files.append(
                File(
                    path: path, identity: identity, bytes: min(max(Int64(status.st_size), 0), 1 << 53),
                    time: seconds * 1000 + Int64(status.st_mtim.tv_nsec) / 1_000_000))
        }
    }

    /// - Parameters:
    ///   - recorder: The recorder whose files they become; empty for any.
    ///   - isMarking: Whether the files are marked. Otherwise they are looked at.
    ///   - say: Takes a line for each file.
    func run(recorder: String, isMarking: Bool, say: (String) -> Void) -> Outcome {
        var outcome = Outcome()
        let runFiles = RunFiles()
        let now = RecordingMoment.now()
        let latest = now.wall / 1_000_000
        let boot = RecordingMark.currentBoot()
        for file in files {
            let mark = RecordingMark(
                recorder: recorder, run: 0, number: 0, file: FileNames.name(of: file.path),
                folder: RecordingMark.fingerprint(ofFolder: FileNames.folder(of: file.path)),
                // A time of the future says nothing.
                unixMilliseconds: min(file.time, latest), clock: 0, boot: boot, machine: RecordingMark.thisMachine,
                made: now)
            do throws(MarkedFile.Refusal) {
                if isMarking {
                    try MarkedFile.add(mark, to: file.path, meant: file.identity, runFiles)
                } else {
                    _ = try MarkedFile.form(ofWhole: file.path)
                }
                outcome.taken += 1
                outcome.bytes += min(file.bytes, 1 << 53)
                // The file's age comes from this time, so a person sees it first.
                let time = WallTime.text(mark.unixMilliseconds * 1_000_000, digits: 0)
                say(
                    "\(isMarking ? "adopted" : "would adopt") \(file.path) (\(Terminal.bytes(Int(file.bytes))), of \(time))"
                )
            } catch {
                outcome.left += 1
                say("left: \(error.text(file.path))")
            }
        }
        return outcome
    }
}
