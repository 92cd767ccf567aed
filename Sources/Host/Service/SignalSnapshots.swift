// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Synchronization

/// Pictures that SIGUSR1 asks for: `--snapshot-on-signal STAGE=FILE`.
///
/// The signal asks for the next picture of each stage that was named, as the command `snapshot` does, each time with a
/// name that is free. [any thread]
final class SignalSnapshots: Sendable {
    /// A stage, and the file of its first picture.
    struct Request: Sendable {
        var stage: String
        /// The name as it was written.
        var file: String

        /// - Parameter text: `STAGE=FILE`; nil for anything else.
        init?(_ text: String) {
            guard let mark = text.firstIndex(of: "="), mark != text.startIndex else { return nil }
            stage = String(text[..<mark])
            file = String(text[text.index(after: mark)...])
            let ending = file.split(separator: ".").last.map { $0.lowercased() } ?? ""
            guard file.contains("."), ["jpg", "jpeg", "png"].contains(ending) else { return nil }
        }

        /// `shot.jpg`, `shot-0002.jpg`, `shot-0003.jpg` …
        func name(_ number: Int) -> String {
            guard number > 1, let dot = file.lastIndex(of: ".") else { return file }
            let digits = String(number)
            return file[..<dot] + "-" + String(repeating: "0", count: max(4 - digits.count, 0)) + digits + file[dot...]
        }
    }

    /// The most files of one name, including those with numbers.
    static let mostFiles = 999_999

    static let nobodyAsked =
        "SIGUSR1 took no picture: no stage was named for it. Start framehost with --snapshot-on-signal STAGE=FILE."

    static let tooEarly =
        "SIGUSR1 took no picture: the chain does not run. Send it again while it does."

    private let requests: [Request]
    private let folder: String
    /// The number of the last picture that was asked for, by request.
    private let numbers: Mutex<[Int]>
    /// Pictures that could not be taken, and why the first could not.
    private let failures = Locked<(count: Int, first: String?)>((0, nil))

    /// - Parameter folder: The folder to which the names are relative: the program's current one.
    init(_ requests: [Request], folder: String) {
        self.requests = requests
        self.folder = folder
        numbers = Mutex([Int](repeating: 0, count: requests.count))
    }

    var isEmpty: Bool { requests.isEmpty }

    /// [control thread] The fault of a stage that the chain does not have, or that gives no pictures; nil where
    /// there is no fault.
    func fault(in plan: ChainPlan) -> FrameHostError? {
        for request in requests {
            let place = FaultPlace(argument: "--snapshot-on-signal")
            guard let stage = plan.stages.first(where: { $0.id == request.stage }) else {
                return FrameHostError(
                    .invalidConfiguration, place: place, what: "the chain has no stage '\(request.stage)'",
                    remedy: remedyOfUnknownStage(request.stage, in: plan.stages.map(\.id)))
            }
            guard stage.output?.video != nil else {
                return FrameHostError(
                    .invalidConfiguration, place: place, what: "'\(request.stage)' gives no pictures",
                    remedy: "Name a stage that gives raw video.")
            }
            if let hider = stage.hiddenBy {
                return FrameHostError(
                    .invalidConfiguration, place: place,
                    what: "'\(hider)' hides something in the pictures of '\(request.stage)'",
                    remedy:
                        "Name '\(hider)' or a stage behind it. For originals, use the command 'snapshot' with \"original\": true.",
                    reason: .showsOriginals)
            }
        }
        return faultOfFiles()
    }

    /// The fault of two requests for one file, or of a folder that cannot be written; nil where there is no fault.
    private func faultOfFiles() -> FrameHostError? {
        let place = FaultPlace(argument: "--snapshot-on-signal")
        var stages: [String: String] = [:]
        for request in requests {
            let file = path(request.file)
            if let other = stages.updateValue(request.stage, forKey: file) {
                return FrameHostError(
                    .invalidConfiguration, place: place,
                    what: other == request.stage
                        ? "'\(other)' is given twice with the file '\(request.file)'"
                        : "'\(request.file)' is the file of both '\(other)' and '\(request.stage)'",
                    remedy: other == request.stage ? "Give it once." : "Give each stage its own file.")
            }
            let folder =
                file.lastIndex(of: "/").map { $0 == file.startIndex ? "/" : String(file[..<$0]) } ?? "."
            var status = stat()
            var code: Int32 = 0
            if stat(folder, &status) != 0 {
                code = errno
            } else if status.st_mode & S_IFMT != S_IFDIR {
                code = ENOTDIR
            } else if access(folder, W_OK | X_OK) != 0 {
                code = errno
            }
            guard code != 0 else { continue }
            return FrameHostError(
                .invalidConfiguration, place: place,
                what: "'\(request.file)' cannot be written: \(String(cString: strerror(code)))",
                remedy: code == ENOENT
                    ? "Create the folder, or correct the name." : "Name a file in a folder you may write to.")
        }
        return nil
    }

    /// Asks for one picture of each stage.
    func take(_ snapshots: Snapshots, reply: @escaping CommandReply) {
        let counting: CommandReply = { [failures] answer in
            // A stage that gives no pictures now, or no more, is said, but is no failure of the run.
            if !answer.faults.allSatisfy(\.mayBeOfEnd) {
                failures.withLock { $0 = ($0.count + 1, $0.first ?? answer.faults.first?.description) }
            }
            reply(answer)
        }
        for (index, request) in requests.enumerated() {
            let name = numbers.withLock { numbers in
                numbers[index] += 1
                while numbers[index] < Self.mostFiles, exists(request.name(numbers[index])) { numbers[index] += 1 }
                return request.name(numbers[index])
            }
            snapshots.take(request.stage, ["path": .string(path(name))], reply: counting)
        }
    }

    /// [at the end] The fault of pictures that could not be taken; nil where all were. The run then counts as failed: who
    /// sends a signal gets no answer.
    var fault: FrameHostError? {
        let (count, first) = failures.withLock { $0 }
        guard count > 0, let first else { return nil }
        return FrameHostError(
            .unavailable, place: FaultPlace(argument: "--snapshot-on-signal"),
            what: "\(count == 1 ? "1 picture" : "\(count) pictures") could not be taken",
            remedy: "Correct the cause, and send SIGUSR1 again.", cause: first)
    }

    private func path(_ name: String) -> String { name.hasPrefix("/") ? name : "\(folder)/\(name)" }

    private func exists(_ name: String) -> Bool {
        var status = stat()
        return lstat(path(name), &status) == 0
    }
}
